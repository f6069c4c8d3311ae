"""Replies of any kind are read in a time that grows with their length and no faster."""

from __future__ import annotations

import contextlib
import itertools
import json
import re

import pytest

from agentgym_gym import FORMATS, errors
from agentgym_gym.actions import MAX_ACTION_CHARS
from clock import cpu_seconds
from every_format import ENVIRONMENTS, THOROUGH, each_environment, read

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
untraced = pytest.mark.no_cover  # measuring coverage takes several times as long

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
    """A long repetition by itself, around a good reply, and in each place inside one."""
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


@pytest.mark.slow
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


@each_environment
@untraced
def test_reading_as_agentgym_does_takes_linear_time(environment):
    for reader in environment.agentgym_readers.values():

        def parse(reply, reader=reader):
            with contextlib.suppress(errors.ActionError):
                reader(reply)

        for family in families(environment):
            assert_linear(parse, lambda size, f=family: [f * (size // len(f))], family)


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
