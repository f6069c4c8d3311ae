"""Replies of any kind are read in a time that grows with their length and no faster."""

from __future__ import annotations

import contextlib
import gc
import itertools
import json
import random
import re

import pytest

from agentgym_gym import FORMATS, errors
from agentgym_gym.actions import MAX_ACTION_CHARS
from clock import at_most, cpu_seconds
from every_format import (
    ENVIRONMENTS,
    EVERY_FORMAT,
    THOROUGH,
    each_environment,
    each_pair_and_native,
    read,
)

# The reading time is measured in two formats, of the first environment in all of them, and for commands whose
# actions have several lines; the thorough profile measures all pairs.
each_timed_pair = pytest.mark.parametrize(
    ("environment", "action_format"),
    [
        pytest.param(e, f, id=f"{e.name}-{f.name}")
        for e in ENVIRONMENTS
        for f in FORMATS.values()
        if THOROUGH
        or e is ENVIRONMENTS[0]
        or f.name in ("react", "function_calling")
        or (e.name, f.name) == ("Weather", "adapt")
    ],
)
untraced = pytest.mark.no_cover

FAMILIES = [
    *("[", "{", "(", "]", "}", ")", "`", "```", "~", "'", '"', "\\", "\\'", '\\"', "<", "<|", ">", ">>"),
    *("*", "**", "_", "-", "--", ".", ",", ":", "1", "9", "1_", "0x", "# ", "#\n", "``` ", "\n```\n"),
    *("Action:", "Action: ", "\nAction:", "\n Action:", "action", "\naction", "\n>>action:", "Action"),
    *("**Action:**", "*Action*:", "Thought:", "\nThought:", "\nObservation:", "\n>", "\n*", "\n_-", "\n#"),
    *("<action>", "</action>", "<action></action>", "<tool_call>", "</tool_call>", "<tool_call>{"),
    *("</s>", "</s> ", "<think>", "</think>", "<think></think>", "</think><think>", "<|im_end|>"),
    *("<end_of_turn", "> ", "\n> ", "> think:", "\n> think: a", "think:", "\nthink:"),
    *("> a\n", "> {\n", "> ```\n", "Action: <search>a\n", "Action: {\n"),
    *(
        "\n",
        "\r\n",
        "\r",
        "\t",
        " \n",
        " ",
        "\x00",
        "\x85",
        "\u2028",
        "\x1c",
        "\u200b",
        "\u3000",
        "\ud800",
        "İ",
        "é",
    ),
    *('{"a":', '{"name":', '{"function":', '{"function_name": "a"}', "[1,", '"a":1,', "1,", "{}", "{}{"),
    *('{"":0},', "lambda:", "not ", "f(", "f'{", "a.", "a,", "a=", "*a,", "if 1:", "'a'", "'a' ", "+1", "-1"),
    *("1 if 1 else ", "a\\\n", "a:=", "'''", "'''a\n", "r'", "\\N{", "\\x", "\\\n"),
]


def families(environment):
    """Texts to repeat: the marks above and every part of every template."""
    fixed = [
        text for a in environment.grammar.actions for t in (a.usage(), *a.accepts) for text in _literals(t)
    ]
    examples = [str(example) for example in environment.grammar.examples]
    words = [word + " " for example in examples for word in example.split()]
    all_of_them = [*FAMILIES, *fixed, *words, *(f"{e}\n" for e in examples), *(f"{e}, " for e in examples)]
    # The environments share them out, and the first one takes more of them; thorough is each twice over.
    first = environment is ENVIRONMENTS[0]
    step = (2 if first else 7) if THOROUGH else (5 if first else len(ENVIRONMENTS))
    return list(dict.fromkeys(all_of_them))[ENVIRONMENTS.index(environment) % step :: step]


def _literals(template):
    return [text for text in re.split(r"\{\w+\}|<\w+>", template) if text]


def placed(environment, action_format, family, size):
    """Only a long repetition, one around a good reply, and one in each place inside it."""
    action = environment.grammar.examples[0]
    long = family * (size // len(family))
    marker = "I know what to do next."
    reply = action_format.render(action, marker)
    quoted = json.dumps(long, ensure_ascii=False)[1:-1] if action_format.name == "function_calling" else long
    yield long
    yield reply + long
    yield long + reply
    yield reply.replace(marker, quoted)
    yield reply.replace(str(action), long)
    yield reply.replace(str(action), f"{action} {long} {action}")


def assert_linear(function, make, name, *, sizes=(1 << 12, 1 << 14, 1 << 16, 1 << 18, 1 << 20)):
    """Check that four times the text takes at most eight times as long, from a few kilobytes on.

    Beginning small, so that a parser which is not linear is found out before it takes hours. What takes less
    than the floor at the larger size is let pass: there the clock and the collector decide.
    """
    floor, bound = 0.5, 8.0
    before = bound
    for size in sizes:
        arguments = list(make(size))
        allowed = max(floor, min(bound, 8 * before))

        def all_of_them(arguments=arguments):
            for argument in arguments:
                function(argument)

        spent = cpu_seconds(all_of_them, allowed)
        assert spent <= allowed, f"{name!r}: {spent:.3f} s at {size} characters, {before:.3f} s at a quarter"
        before = spent


@pytest.mark.exhaustive
@each_timed_pair
@untraced
def test_reading_takes_linear_time(environment, action_format):
    def parse(reply):
        read(action_format, reply, environment.grammar)

    small, large = (1 << 12, 1 << 14), (1 << 18, 1 << 20)
    for number, family in enumerate(families(environment)):

        def everywhere(size, family=family):
            return list(placed(environment, action_format, family, size))

        def somewhere(size, number=number, family=family):
            return itertools.islice(
                placed(environment, action_format, family, size), number % 6, number % 6 + 1
            )

        assert_linear(parse, everywhere, family, sizes=small)
        # Of this length only a reply is looked through, for the marks of the environment's own actions.
        if environment is ENVIRONMENTS[0] or environment.grammar.style.mark is not None:
            assert_linear(parse, somewhere, family, sizes=large)


# Limit of the processor time at 32 kB over the time at 16 kB. Below the floor the clock decides.
DOUBLED, FLOOR, ROUNDS = 2.5, 0.01, 24  # a busy machine needs more rounds for its best


def growth(function, make):
    """Return the processor times at 16 kB and at 32 kB: the best of some rounds, until these are enough.

    The two sizes take turns, so that a machine that is busy for a while slows both. Garbage is not
    collected meanwhile, as by `timeit`: a collection may fall only to the larger size.
    """
    smaller, larger = make(1 << 14), make(1 << 15)
    times = [float("inf"), float("inf")]
    with at_most(30), no_collection():
        for _ in range(ROUNDS):
            times[1] = min(times[1], cpu_seconds(lambda: function(larger), 0, calls=1))
            if times[1] <= FLOOR:
                break
            times[0] = min(times[0], cpu_seconds(lambda: function(smaller), 0, calls=1))
            if times[1] <= DOUBLED * times[0]:
                break
    return times


@contextlib.contextmanager
def no_collection():
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def assert_doubled_at_most(function, make, name):
    try:
        small, large = growth(function, make)
    except TimeoutError as error:
        raise AssertionError(f"{name!r}: {error}") from error
    assert large <= max(FLOOR, DOUBLED * small), f"{name!r}: {large:.4f} s at 32 kB, {small:.4f} s at 16 kB"


def nth_place(environment, action_format, family, number):
    """Return what makes a text of a size: the repetition in one of the places of `placed`."""

    def make(size):
        return next(itertools.islice(placed(environment, action_format, family, size), number, None))

    return make


@each_pair_and_native
@untraced
def test_twice_the_text_takes_twice_the_time(environment, action_format):
    """Some families in one place each; `test_twice_any_text_takes_twice_the_time` has all in every place."""

    def parse(reply):
        read(action_format, reply, environment.grammar)

    # Each format of an environment has others of its families.
    offset = sum(map(ord, action_format.name))
    for number, family in enumerate(families(environment)[offset % 5 :: 5], offset):
        make = nth_place(environment, action_format, family, number % 6)
        assert_doubled_at_most(parse, make, (family, number % 6))


@pytest.mark.exhaustive
@each_pair_and_native
@untraced
def test_twice_any_text_takes_twice_the_time(environment, action_format):
    def parse(reply):
        read(action_format, reply, environment.grammar)

    for family, number in itertools.product(families(environment), range(6)):
        make = nth_place(environment, action_format, family, number)
        assert_doubled_at_most(parse, make, (family, number))


@each_environment
@untraced
def test_twice_the_text_takes_twice_the_time_as_agentgym_reads(environment):
    for reader in environment.agentgym_readers.values():

        def parse(reply, reader=reader):
            with contextlib.suppress(errors.ActionError):
                reader(reply)

        for family in families(environment)[:: 1 if THOROUGH else 4]:
            assert_doubled_at_most(parse, lambda size, f=family: f * (size // len(f)), family)


@pytest.mark.parametrize(("power", "linear"), [(1, True), (1.3, True), (1.4, False), (2, False)])
def test_growth_is_seen(power, linear, monkeypatch):
    """The bound distinguishes linear work from other work, by a clock that only the work moves."""
    spent = 0.0
    monkeypatch.setattr("clock.time.thread_time", lambda: spent)

    def work(text):
        nonlocal spent
        spent += (len(text) / (1 << 14)) ** power

    if linear:
        assert_doubled_at_most(work, lambda size: " " * size, power)
    else:
        with pytest.raises(AssertionError, match="at 32 kB"):
            assert_doubled_at_most(work, lambda size: " " * size, power)


# A repetition between two marks: how often it is repeated, and the seconds that 1,000 characters may take.
# Small numbers come first, as work that grows exponentially never ends with the large ones.
OPENED = (
    '<tool_call>{"a": 1}',
    "<tool_call>",
    "<action>",
    "Action:\n",
    "```python\n",
    "<think>",
    '{"name": "',
    "> ",
)
CLOSED = ("[1{", "{", "</action>", "\n```", '"}', "</tool_call>", "Action: ", "</think>", ")", "")
REPEATED = (3, 4, 5, 6, 7, 8, 9, 10, 12, 14, 17, 21, 400)
QUICK = 0.03


def assert_quick_between_marks(environment, count):
    """Check some combinations, drawn by a seed, each in one format; all of them for no count."""
    combinations = list(itertools.product(OPENED, families(environment), CLOSED))
    random.Random(environment.name).shuffle(combinations)  # noqa: S311 - no secret
    for number, (opened, family, closed) in enumerate(combinations[:count]):
        action_format = EVERY_FORMAT[number % len(EVERY_FORMAT)]
        for times in REPEATED:
            text = f"{opened}{family * times}{closed}"
            enough = QUICK if len(text) < 1_000 else QUICK * len(text) / 1_000
            with at_most(20):
                spent = cpu_seconds(
                    lambda t=text, f=action_format: read(f, t, environment.grammar), enough, calls=12
                )
            assert spent <= enough, f"{action_format.name}: {text[:200]!r} took {spent:.3f} s"


@each_environment
@untraced
def test_some_repetitions_between_marks_are_read_quickly(environment):
    assert_quick_between_marks(environment, 5)


@pytest.mark.exhaustive
@each_environment
@untraced
def test_any_repetition_between_marks_is_read_quickly(environment):
    assert_quick_between_marks(environment, None)


@pytest.mark.parametrize("action_format", EVERY_FORMAT, ids=lambda f: f.name)
@pytest.mark.parametrize("fence", ["```", "\n```\n", "~~~", "\n```json\n"])
@untraced
def test_fences_after_a_call_are_read_quickly(action_format, fence):
    """A reader once took three times as long for each further fence."""
    environment = ENVIRONMENTS[0]
    for times in REPEATED:
        text = '<tool_call>{"a": 1}' + fence * times + "[1{"
        assert cpu_seconds(lambda t=text: read(action_format, t, environment.grammar), QUICK) <= QUICK


@pytest.mark.slow
@each_environment
@untraced
def test_reading_as_agentgym_does_takes_linear_time(environment):
    for reader in environment.agentgym_readers.values():

        def parse(reply, reader=reader):
            with contextlib.suppress(errors.ActionError):
                reader(reply)

        for family in families(environment):
            assert_linear(parse, lambda size, f=family: [f * (size // len(f))], family)


@pytest.mark.slow
@each_environment
@untraced
def test_reading_an_action_takes_linear_time(environment):
    """Actions have no limit of length of their own; the grammar has, and four times that is tried."""
    sizes = (1 << 12, 1 << 14, 1 << 16)

    def parse(text):
        for action in environment.grammar.actions:
            for head in ("", action.head()):
                with contextlib.suppress(errors.ActionError):
                    action.parse(head + text)

    for family in families(environment):
        assert_linear(parse, lambda size, f=family: [f * (size // len(f))], family, sizes=sizes)


@each_environment
def test_a_long_action_is_refused_before_it_is_read(environment):
    with pytest.raises(errors.BadArguments):
        environment.grammar.parse(str(environment.grammar.examples[0]) + " " * MAX_ACTION_CHARS)
