"""What is promised of every format over every grammar: rendering, reading, refusing, and in what time."""

from __future__ import annotations

import contextlib
import itertools
import json
import re
import subprocess
import sys
import textwrap
import time
import warnings

import jsonschema
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

import agentgym_gym
from agentgym_gym import FORMATS, AgentGymEnv, ReplySpace, errors
from agentgym_gym.actions import MAX_ACTION_CHARS, Thought
from agentgym_gym.envs import textcraft
from agentgym_gym.testing.strategies import broken_replies, mixtures, thoughts

ENVIRONMENTS = agentgym_gym.environments()
THOROUGH = settings.default.max_examples >= 100

each_environment = pytest.mark.parametrize("environment", ENVIRONMENTS, ids=lambda e: e.name)
each_pair = pytest.mark.parametrize(
    ("environment", "action_format"),
    [pytest.param(e, f, id=f"{e.name}-{f.name}") for e in ENVIRONMENTS for f in FORMATS.values()],
)

TEXT_FORMATS = frozenset({"react", "tags", "adapt", "bare"})

# In a plain `pytest` the time that reading takes is looked at in two formats, but for the first environment.
each_timed_pair = pytest.mark.parametrize(
    ("environment", "action_format"),
    [
        pytest.param(e, f, id=f"{e.name}-{f.name}")
        for e in ENVIRONMENTS
        for f in FORMATS.values()
        if THOROUGH or e is ENVIRONMENTS[0] or f.name in ("react", "function_calling")
    ],
)

# Strategies of text leave out lone surrogates unless asked; what a model writes can hold them.
ANY_TEXT = st.text(st.characters(codec=None))


def read(action_format, reply, grammar):
    """Read a reply, and check all that holds of any reading; None for one that is refused."""
    try:
        reading = action_format.parse(reply, grammar)
    except errors.ActionError as error:
        check_refusal(error)
        return None
    assert type(reading) in {*grammar.actions, Thought}
    if not isinstance(reading, Thought):
        assert grammar.parse(str(reading)) == reading
        assert grammar.from_call(reading.name(), reading.to_json()) == reading
    return reading


def check_refusal(error):
    """Check that it is one of the four kinds, with a message that fits into an observation."""
    assert type(error) in {errors.NoAction, errors.ManyActions, errors.UnknownAction, errors.BadArguments}
    assert 0 < len(str(error)) < 1_000
    assert len(getattr(error, "text", None) or "") <= MAX_ACTION_CHARS


# ---------------------------------------------------------------------------------------- there and back


@each_pair
def test_what_is_rendered_is_read(environment, action_format):
    first, last = environment.grammar.examples[0], environment.grammar.examples[-1]

    @given(environment.grammar.strategy(), mixtures(environment) | ANY_TEXT)
    @example(first, f"</think>{last}")
    @example(first, f"</think>\n{last}\n")
    @example(first, f"{action_format.render(last)}")
    def check(action, thought):
        plain = action_format.render(action)
        assert action_format.parse(plain, environment.grammar) == action
        try:
            reply = action_format.render(action, thought)
        except errors.BadOption:
            return  # the thought hides the action, and the caller is told
        assert action_format.parse(reply, environment.grammar) == action

    check()


@each_pair
def test_an_ordinary_thought_hides_nothing(environment, action_format):
    @given(environment.grammar.strategy(), thoughts())
    def check(action, thought):
        assert action_format.parse(action_format.render(action, thought), environment.grammar) == action

    check()


@each_pair
def test_the_prompt_teaches_what_is_read(environment, action_format):
    example = action_format.example(environment.grammar)
    instructions = action_format.instructions(environment.grammar)
    assert example in instructions
    assert action_format.parse(example, environment.grammar) == environment.grammar.examples[0]
    for action in environment.grammar.examples:
        assert action.name() in instructions or action.usage() in instructions
        assert type(action).doc() in instructions
    env = AgentGymEnv(environment.name, action_format=action_format.name)
    assert instructions in env.system_prompt
    env.close()


@each_environment
def test_the_text_of_an_action_is_read(environment):
    @given(environment.grammar.strategy())
    def check(action):
        grammar = environment.grammar
        assert grammar.parse(str(action)) == action
        spaced = str(action) if grammar.style.verbatim else str(action).replace(" ", " \n ")
        assert grammar.parse(f"\t{spaced}\n") == action
        assert grammar.knows(str(action))

    check()


@each_environment
def test_a_call_of_an_action_is_read(environment):
    @given(environment.grammar.strategy())
    def check(action):
        call = action.to_json()
        assert environment.grammar.from_call(action.name(), call) == action
        assert environment.grammar.from_call(action.name(), json.loads(json.dumps(call))) == action
        # All in order, but for what may be left out and is.
        assert list(call) == [n for n in environment.grammar.signature(action.name()) if n in call]

    check()


@each_environment
def test_the_tools_describe_the_calls(environment):
    grammar = environment.grammar
    schemas = {}
    for tool in json.loads(json.dumps(grammar.tools())):
        assert set(tool) == {"type", "function"}
        assert tool["type"] == "function"
        assert set(tool["function"]) == {"name", "description", "parameters"}
        assert tool["function"]["description"]
        schemas[tool["function"]["name"]] = schema = tool["function"]["parameters"]
        jsonschema.Draft202012Validator.check_schema(schema)
        for described in schema["properties"].values():
            assert described["description"]
    assert set(schemas) == {action.name() for action in grammar.actions}

    @given(grammar.strategy())
    def check(action):
        jsonschema.validate(action.to_json(), schemas[action.name()], jsonschema.Draft202012Validator)

    check()
    for action in grammar.examples:
        validator = jsonschema.Draft202012Validator(schemas[action.name()])
        assert not validator.is_valid({**action.to_json(), "no such argument": 1})
        required = schemas[action.name()]["required"]
        assert set(required) <= set(action.to_json())
        assert all(not validator.is_valid(_without(action.to_json(), name)) for name in required)


def _without(mapping, key):
    return {k: v for k, v in mapping.items() if k != key}


@each_environment
def test_actions_are_values(environment):
    @given(environment.grammar.strategy(), environment.grammar.strategy())
    def check(one, other):
        assert hash(one) == hash(environment.grammar.parse(str(one)))
        assert (one == other) == (str(one) == str(other))

    check()


@each_pair
def test_samples_are_members_and_readable(environment, action_format):
    space = ReplySpace(action_format, environment.grammar, seed=0)
    seen = set()
    for _ in range(100):
        reply = space.sample()
        assert reply in space
        action = action_format.parse(reply, environment.grammar)
        assert action in space
        seen.add(type(action))
    assert seen == set(environment.grammar.actions)
    again = ReplySpace(action_format, environment.grammar, seed=0)
    assert space == again
    assert [again.sample() for _ in range(5)] != [space.sample() for _ in range(5)]
    again.seed(1)
    space.seed(1)
    assert [again.sample() for _ in range(5)] == [space.sample() for _ in range(5)]


# ------------------------------------------------------------------------------------- whatever is written


@each_pair
def test_any_text_is_read_or_refused(environment, action_format):
    @settings(max_examples=2 * settings.default.max_examples)
    @given(ANY_TEXT | mixtures(environment))
    def check(text):
        read(action_format, text, environment.grammar)

    check()


@each_pair
def test_a_corrupted_reply_is_read_or_refused(environment, action_format):
    @given(broken_replies(environment, action_format))
    def check(text):
        read(action_format, text, environment.grammar)

    check()


@each_environment
def test_any_call_is_read_or_refused(environment):
    scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary(max_size=3)
    scalars |= st.sampled_from([1e308, "10" * 5000, "1" * 19, 2**63, ""])
    scalars |= st.sampled_from([5_000, 100_000]).map(lambda digits: -(10**digits))  # too long for repr()
    values = st.recursive(
        scalars, lambda v: st.lists(v, max_size=3) | st.dictionaries(st.text() | st.integers(), v, max_size=3)
    )
    names = [a.name() for a in environment.grammar.actions]
    arguments = sorted({name for n in names for name in environment.grammar.signature(n)})

    @settings(max_examples=2 * settings.default.max_examples)
    @given(
        st.sampled_from(names) | st.text(),
        st.dictionaries(st.sampled_from([*arguments, "no such argument"]), values) | values,
    )
    def check(name, value):
        try:
            action = environment.grammar.from_call(name, value)
        except errors.ActionError as error:
            check_refusal(error)
        else:
            assert environment.grammar.parse(str(action)) == action

    check()


@each_pair
def test_two_good_replies_are_one_too_many(environment, action_format):
    actions = st.tuples(environment.grammar.strategy(), environment.grammar.strategy())

    @given(actions, st.sampled_from(["\n", "\n\n"]), st.sampled_from(["", "I think."]))
    def check(two, between, thought):
        assume(two[0] != two[1])  # the same one twice is one
        both = between.join(action_format.render(action, thought) for action in two)
        if two[0] == two[1] and action_format.name in TEXT_FORMATS:
            assert action_format.parse(both, environment.grammar) == two[0]  # the same, said twice
            return
        with pytest.raises(errors.ManyActions):
            action_format.parse(both, environment.grammar)

    check()


@each_pair
def test_no_reply_is_no_action(environment, action_format):
    for nothing in ("", " ", "\n\n", "\x00", "<think></think>", "</s>", "<|im_end|>"):
        with pytest.raises(errors.ActionError):
            action_format.parse(nothing, environment.grammar)


@each_pair
@pytest.mark.parametrize(
    "end", ["</s>", "</s></s>", "<|im_end|>", "<|im_end|>\n", "<|eot_id|>", "\n \n", "\r\n"]
)
def test_an_end_mark_is_not_part_of_the_action(environment, action_format, end):
    for action in environment.grammar.examples:
        assert action_format.parse(action_format.render(action) + end, environment.grammar) == action


@each_pair
def test_a_thinking_block_is_not_part_of_the_reply(environment, action_format):
    first, last = environment.grammar.examples[0], environment.grammar.examples[-1]
    reply = action_format.render(first, "I think.")
    draft = action_format.render(last).replace("<think>", "").replace("</think>", "")
    blocks = ("<think>\nHm.\n</think>\n\n", "Hm.</think>", f"<think>{draft}</think>", f"{draft}\n</think>\n")
    for block in blocks:
        assert action_format.parse(block + reply, environment.grammar) == first
    with pytest.raises(errors.NoAction):
        action_format.parse(f"<think>\nHm.\n{draft}", environment.grammar)


@each_pair
def test_windows_line_ends_change_nothing(environment, action_format):
    for action in environment.grammar.examples:
        reply = action_format.render(action, "One.\nTwo.").replace("\n", "\r\n")
        assert action_format.parse(reply, environment.grammar) == action


# -------------------------------------------------------------------------------------- nothing is ever run

EVIL = [
    "__import__('os').system('touch SENTINEL')",
    "open('SENTINEL', 'w')",
    "open('SENTINEL', 'w').close()",
    "exec(\"open('SENTINEL', 'w')\")",
    "eval('1')",
    "f\"{open('SENTINEL', 'w')}\"",
    "(x := open('SENTINEL', 'w'))",
    "(lambda: open('SENTINEL', 'w'))()",
    "[open(n, 'w') for n in ['SENTINEL']]",
    "{n: open(n, 'w') for n in ['SENTINEL']}",
    "*open('SENTINEL', 'w')",
    "**open('SENTINEL', 'w')",
    "().__class__.__base__.__subclasses__()",
    "'{0.__class__}'.format(1)",
    "print",
    "x",
    "1 if open('SENTINEL', 'w') else 2",
    "not 1",
    "1 + 1",
    "'a' 'b' + 'c'",
    "'%s' % open('SENTINEL', 'w')",
    "await f()",
    "9**9**9",
    "'a' * 10**9",
    "1 << 10**9",
    "-" * 100_000 + "1",
    "-" * 3_000 + "1",
    "(" * 5_000 + ")" * 5_000,
    "[" * 150 + "]" * 150,
    "[" * 5_000 + "]" * 5_000,
    "{1:" * 150 + "1" + "}" * 150,
    "1" * 5_000,
    "0x" + "f" * 8_000,
    "-0x" + "f" * 8_000,
    "0b" + "1" * 16_000,
    "[0x" + "f" * 8_000 + "]",
    "{0x" + "f" * 8_000 + ": 1}",
    "1e999",
    "1j",
    "1_0",
    "...",
    "{1, 2}",
    "{[]: 1}",
    "{**{}}",
    "b'1'",
    "'\\ud800'",
    "'\ud800'",
    "'\\x00'",
    "'\\N{no such name}'",
    "'\\d\\_'",
    "'a\x00b'",
]

HARMLESS = {"1_0", "'\\ud800'", "'\\x00'", "'\\d\\_'"}  # plain values, which some action may allow

WHOLE = [
    "import os",
    "import os; os.system('touch SENTINEL')",
    "(CALL)()",
    "CALL()",
    "CALL.real",
    "CALL[0]",
    "CALL or open('SENTINEL', 'w')",
    "CALL; CALL",
    "CALL, CALL",
    "[CALL, CALL]",
    "[[CALL]]",
    "x = y = CALL or 1",
    "x[open('SENTINEL', 'w')] = CALL",
    "x: open('SENTINEL', 'w') = CALL",
    "print(CALL, open('SENTINEL', 'w'))",
    "print(CALL, file=open('SENTINEL', 'w'))",
    "str(CALL)",
    "@open('SENTINEL', 'w')\ndef f(): pass",
    "@open\nclass A: CALL",
    "def f(x=open('SENTINEL', 'w')): CALL",
    "if True: CALL",
    "while True: CALL",
    "for x in CALL: pass",
    "with open('SENTINEL', 'w'): CALL",
    "async def f(): await CALL",
    "lambda: CALL",
    "assert CALL",
    "del CALL",
    "raise CALL",
    "f'{CALL}'",
    "os.CALL",
    "match CALL:\n  case 1: pass",
]


def calls_with(action, expression):
    """Return calls of an action with an expression in the place of each argument, and as one too many."""
    values = [repr(value) for value in action.to_json().values()]
    for place in range(len(values)):
        yield f"{action.name()}({', '.join([*values[:place], expression, *values[place + 1 :]])})"
        keywords = [f"{k}={v}" for k, v in zip(action.to_json(), values, strict=True)]
        name = list(action.to_json())[place]
        keywords[place] = f"{name}={expression}"
        yield f"{action.name()}({', '.join(keywords)})"
    yield f"{action.name()}({', '.join([*values, expression])})"
    yield f"{action.name()}({', '.join([*values, f'more={expression}'])})"


def evil_codes(environment):
    """Code that would do something; in a plain `pytest`, but for the first environment, of two actions."""
    whole_house = THOROUGH or environment is ENVIRONMENTS[0]
    for action in environment.grammar.examples[: None if whole_house else 2]:
        for expression in EVIL:
            if expression not in HARMLESS:
                yield from calls_with(action, expression)
        call = f"{action.name()}({', '.join(map(repr, action.to_json().values()))})"
        yield from (whole.replace("CALL", call) for whole in WHOLE)


@each_environment
@pytest.mark.filterwarnings("default:invalid escape sequence")
def test_code_is_one_call_with_plain_values(environment):
    for code in evil_codes(environment):
        began = time.process_time()
        assert read(FORMATS["code_as_action"], code, environment.grammar) is None, code[:200]
        assert read(FORMATS["code_as_action"], f"```python\n{code}\n```", environment.grammar) is None, code[
            :200
        ]
        assert time.process_time() - began < 1.0, code[:200]


@each_environment
def test_reading_code_warns_of_nothing(environment):
    """What a model writes must not come out on a person's terminal, nor mean less under ``-W error``."""
    action = environment.grammar.examples[0]
    for expression in ("'\\d'", "'\\_'", "1 is 1", "0or 1", "()()", "1if 1else 2"):
        for code in calls_with(action, expression):
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                read(FORMATS["code_as_action"], code, environment.grammar)
            assert caught == [], code


@each_environment
def test_reading_code_leaves_the_warnings_of_others_alone(environment):
    """A program's own warning is shown once for each place, however much is read in between."""
    code = FORMATS["code_as_action"].example(environment.grammar)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        for _ in range(3):
            FORMATS["code_as_action"].parse(code, environment.grammar)
            warnings.warn("the program's own", UserWarning, stacklevel=1)
    assert len(caught) == 1


def evil_replies(environment):
    """Wrap evil codes in all the ways there are: a number of them that is spread over all actions."""
    codes = [code for code in dict.fromkeys(evil_codes(environment)) if len(code) <= 1_000]  # longer: above
    most = 700 if THOROUGH else 200 if environment is ENVIRONMENTS[0] else 50
    actions = {action.name(): action for action in environment.grammar.examples}
    for code in codes[:: 1 + len(codes) // most]:
        yield from (code, f"```python\n{code}\n```", f"Thought:\n{code}\n\nAction:\n{code}", f"> {code}")
        yield from (f"<think>{code}</think><action>{code}</action>", f"<action>{code}</action>")
        yield json.dumps({"function_name": code, "arguments": code})
        called = code.partition("(")[0]
        for action in [actions[called]] if called in actions else environment.grammar.examples[-1:]:
            arguments = dict.fromkeys(action.to_json(), code)
            yield json.dumps({"function_name": action.name(), "arguments": arguments})
            yield json.dumps({"function_name": action.name(), "arguments": code})
            yield f"Action: {str(action).partition('{')[0]}{code}"
            yield f"Action: {str(action).partition('{')[0]}{{{code}}}"


@pytest.mark.slow
@pytest.mark.parametrize("third", range(3))
def test_no_reply_makes_anything_happen(third, tmp_path):
    """Every way of asking for it, read in a process that would tell of any import, file, call of exec…"""
    program = textwrap.dedent(
        """
        import json, sys
        import unicodedata  # which CPython imports to read "\\N{...}"
        import agentgym_gym
        from agentgym_gym import FORMATS, errors

        def read(environment, reply):
            for action_format in FORMATS.values():
                try:
                    action_format.parse(reply, environment.grammar)
                except errors.ActionError:
                    pass
            for reader in environment.agentgym_readers.values():
                try:
                    reader(reply)
                except errors.ActionError:
                    pass

        environments = [agentgym_gym.catalogue.find(name) for name in sys.argv[1:]]
        replies = json.loads(sys.stdin.read())
        for action_format in FORMATS.values():  # what is imported late is imported now
            for environment in environments:
                read(environment, action_format.example(environment.grammar))
                read(environment, "get(1, '\\\\d', 1j, *a)")
        happened = []

        def hook(event, arguments):
            # ast.parse is announced as "compile"; what is compiled to run would be followed by "exec".
            # On a syntax error CPython looks for a source file of the name it gives to text without one.
            if watching and event != "compile" and (event, arguments[0]) != ("open", "<unknown>"):
                happened.append((event, repr(arguments)[:200]))

        watching = True
        sys.addaudithook(hook)
        for environment, several in zip(environments, replies, strict=True):
            for reply in several:
                read(environment, reply)
        watching = False
        print(json.dumps(happened))
        """
    )
    environments = ENVIRONMENTS[third::3]
    ended = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program, *(each.name for each in environments)],
        input=json.dumps([list(evil_replies(each)) for each in environments]),
        capture_output=True,
        text=True,
        cwd=tmp_path,
        check=False,
        timeout=300,
    )
    assert ended.returncode == 0, ended.stderr[-2_000:]
    assert json.loads(ended.stdout) == []
    assert list(tmp_path.iterdir()) == []


# ------------------------------------------------------------------------------------------ in linear time

untraced = pytest.mark.no_cover  # measuring coverage takes several times as long

FAMILIES = [
    *("[", "{", "(", "]", "}", ")", "`", "```", "~", "'", '"', "\\", "\\'", '\\"', "<", "<|", ">", ">>"),
    *("*", "**", "_", "-", "--", ".", ",", ":", "1", "9", "1_", "0x", "# ", "#\n", "``` ", "\n```\n"),
    *("Action:", "Action: ", "\nAction:", "\n Action:", "action", "\naction", "\n>>action:", "Action"),
    *("**Action:**", "*Action*:", "Thought:", "\nThought:", "\nObservation:", "\n>", "\n*", "\n_-", "\n#"),
    *("<action>", "</action>", "<action></action>", "<tool_call>", "</tool_call>", "<tool_call>{"),
    *("</s>", "</s> ", "<think>", "</think>", "<think></think>", "</think><think>", "<|im_end|>"),
    *("<end_of_turn", "> ", "\n> ", "> think:", "\n> think: a", "think:", "\nthink:"),
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
    # The environments share them out, twice over, but for the first one.
    first = environment is ENVIRONMENTS[0]
    step = (1 if first else 7) if THOROUGH else (10 if first else 60)
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


def seconds(function, arguments) -> float:
    began = time.process_time()
    for argument in arguments:
        function(argument)
    return time.process_time() - began


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
        spent = seconds(function, arguments)
        if spent > allowed:
            # Once may have been bad luck. The best of some is what the code takes.
            spent = min(spent, *(seconds(function, arguments) for _ in range(3)))
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
        # A grammar is never given as much, but where actions show by themselves what they are.
        if environment is ENVIRONMENTS[0] or environment.grammar.style.marked:
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


# ---------------------------------------------------------------------------- TextCraft's replies, one by one

STICK = textcraft.Get(1, "stick")
PLANKS = textcraft.Craft(4, "oak planks", (textcraft.Ingredient(1, "oak logs"),))
INVENTORY = textcraft.Inventory()

# Only one thing can be meant.
CLEAR = {
    "bare": {
        "GET 1 Minecraft:Stick.": STICK,
        "`get 1 stick`": STICK,
        "```\nget 1 stick\n```": STICK,
        "```text\nget 1 stick\n```": STICK,
        "```get 1 stick```": STICK,
        "```inventory```": INVENTORY,
        "```\ninventory\n```": INVENTORY,
        "```inventory\n```": INVENTORY,
        "craft 4 oak_planks using 1 oak_logs": PLANKS,
        "- get 1 stick": STICK,
        "1. get 1 stick": STICK,
        "> get 1 stick": STICK,
        "[get 1 stick]": STICK,
        '"get 1 stick".': STICK,
        "**get 1 stick**.": STICK,
        "Inventory.": INVENTORY,
    },
    "react": {
        "Thought: x\n**Action:** get 1 stick": STICK,
        "Thought: x\n**Action**: `get 1 stick`": STICK,
        "Thought: x\n### Action:\nget 1 stick": STICK,
        "Thought: x\nAction：get 1 stick": STICK,
        "Thought: x. Action: get 1 stick": STICK,
        "Action: get 1 stick\n\nObservation: You got it.\nThought: good": STICK,
        "Action: get 1 stick\nI do this because I need it.": STICK,
        "### Thought\nx\n\n### Action\nget 1 stick": STICK,
        "**Action**\nget 1 stick": STICK,
        "Action 1: get 1 stick": STICK,
        "Next Action: get 1 stick": STICK,
        "Action:\nI will take it:\n```\nget 1 stick\n```": STICK,
        "<|channel|>analysis<|message|>Action: get 2 stick<|end|>"
        "<|start|>assistant<|channel|>final<|message|>Action: get 1 stick<|return|>": STICK,
    },
    "tags": {
        "<ACTION>get 1 stick</ACTION>": STICK,
        "<think>x</think><action>get 1 stick": STICK,  # generation stopped at the closing tag
        "<think>a <action> b</think><action>get 1 stick</action>": STICK,
    },
    "adapt": {
        "get 1 stick": STICK,
        "think: x\n> get 1 stick": STICK,
        "> think: x": Thought("x"),
        ">get 1 stick\nOK.": STICK,
        "think: x\nget 1 stick": STICK,
        "> think: x\nget 1 stick": STICK,
    },
    "function_calling": {
        '{"function_name": "inventory"}': INVENTORY,
        '{"name": "get", "arguments": {"count": "1", "item": "stick"}}': STICK,
        '{"name": "inventory"}{"name": "inventory"}': INVENTORY,
        '{"name": "inventory"} {} {"name": "inventory"}': INVENTORY,
        '[{"name": "inventory"}, {"name": "inventory"}]': INVENTORY,
        '{"name": "get", "parameters": {"count": 1.0, "item": "Stick"}}': STICK,
        '{"name": "get", "arguments": "{\\"count\\": 1, \\"item\\": \\"stick\\"}"}': STICK,
        '{"function": {"name": "inventory", "arguments": {}}}': INVENTORY,
        'x <tool_call>\n{"name": "inventory", "arguments": {}}\n</tool_call>': INVENTORY,
        '{"plan": ["a"]}\n{"function_name": "inventory", "arguments": {}}': INVENTORY,
        'I hold {1 oak log}, so:\n{"function_name": "inventory", "arguments": {}}': INVENTORY,
        '{"thought": "one\ntwo", "function_name": "inventory", "arguments": {}}': INVENTORY,
        '{"name": "inventory", "arguments": null}': INVENTORY,
        '{"name": "inventory", "arguments": ""}': INVENTORY,
        '{"name": "functions.Inventory"}': INVENTORY,
        '{"function": "get", "arguments": {"count": 1, "item": "stick"}}': STICK,
        '{"tool_calls": [{"function": {"name": "inventory", "arguments": "{}"}}]}': INVENTORY,
        '<function=get>{"count": 1, "item": "stick"}</function>': STICK,
        "<tool_call>\n<function=get>\n<parameter=count>\n1\n</parameter>\n"
        "<parameter=item>\nstick\n</parameter>\n</function>\n</tool_call>": STICK,
        "<function=inventory></function>": INVENTORY,
        'Well:\n```json\n{"name": "inventory"}\n```\nThat {is} it.': INVENTORY,
    },
    "code_as_action": {
        "get(1, 'stick')": STICK,
        "```tool_code\nget(1, 'stick')\n```": STICK,
        "```python\nget(1, 'stick')": STICK,
        "get(item='stick', count=1)": STICK,
        "get(1, item='stick')  # now": STICK,
        "'''x'''\n# y\nget(count='1', item='stick');": STICK,
        "craft(4, 'oak planks', ['1 oak logs'])": PLANKS,
        "craft(4, 'oak planks', '1 oak logs')": PLANKS,
        "craft(4, 'oak planks', ({'count': 1, 'item': 'oak logs'},))": PLANKS,
    },
}

UNCLEAR = {
    errors.ManyActions: {
        "bare": [
            "get 1 stick\nget 2 stick",
            "get 2 stick\n```\nget 1 stick\n```",
            "```\nget 1 stick\n```\nget 2 stick",
            "```inventory\nget 1 stick\n```",
            "```\nget 1 stick\n```\n```\nget 2 stick\n```",
        ],
        "react": [
            "Action:\nget 2 stick\n```\nget 1 stick\n```",
            "Action: get 1 stick\nAction: get 2 stick",
        ],
        "tags": [
            "<action>get 1 stick</action><think>hm</think><action>get 2 stick</action>",
            "<action>get 1 stick\nget 2 stick</action>",
        ],
        "adapt": [
            "> get 1 stick\n> get 2 stick",
            "get 1 stick\n> get 2 stick",
            "- get 1 stick\n- inventory",
            "get 1 stick.\n`inventory`",
        ],
        "function_calling": [
            '{"name": "inventory"}{"name": "look"}',
            '{"name": "inventory"} {} {"name": "get", "arguments": {"count": 1, "item": "stick"}}',
            '[{"name": "inventory"}, {"name": "get", "arguments": {"count": 1, "item": "stick"}}]',
        ],
        "code_as_action": ["inventory()\ninventory()", "inventory(); inventory()"],
    },
    errors.BadArguments: {
        "bare": [
            "craft 0 oak planks using 1 oak logs",
            "craft -1 oak planks using 1 oak logs",
            "craft 2000000 oak planks using 1 oak logs",
            "craft 99999999999999999999 oak planks using 1 oak logs",
            "craft 4 oak planks using oak logs",
            "craft 4 oak planks",
            "get stick",
            "get ٣ stick",
            "get 1 oak logs and 2 sticks",
            "craft 1 beehive using 3 planks and 2 honeycomb",
            "get 1,000 stick",
        ],
        "code_as_action": [
            "inventory(1)",
            "inventory(x=1)",
            "get(1)",
            "get(1, 'stick', 2)",
            "get(1, 'stick', count=2)",
            "get(True, 'stick')",
        ],
        "function_calling": [
            '{"name": "get", "name": "craft"}',
            '{"name": "get", "arguments": {"count": NaN, "item": "stick"}}',
            '{"name": "get", "arguments": {"count": 1',
        ],
    },
    errors.UnknownAction: {
        "bare": ["dance"],
        "code_as_action": ["dance(1)", "dance(x=1)"],
        "function_calling": ['{"name": "dance"}'],
    },
    errors.NoAction: {
        "react": ["get 1 stick", "Action:", "Action: ``"],
        "function_calling": ["get 1 stick", '{"thought": "x"}'],
        "code_as_action": ["get 1 stick", "# nothing"],
    },
}


@pytest.mark.parametrize(
    ("name", "reply", "expected"),
    [(name, reply, action) for name, replies in CLEAR.items() for reply, action in replies.items()],
)
def test_what_is_clear_is_read(name, reply, expected):
    assert FORMATS[name].parse(reply, textcraft.TEXTCRAFT.grammar) == expected


@pytest.mark.parametrize(
    ("name", "reply", "kind"),
    [
        (name, reply, kind)
        for kind, formats in UNCLEAR.items()
        for name, replies in formats.items()
        for reply in replies
    ],
)
def test_what_is_not_clear_is_refused(name, reply, kind):
    with pytest.raises(kind) as raised:
        FORMATS[name].parse(reply, textcraft.TEXTCRAFT.grammar)
    assert type(raised.value) is kind


def test_the_number_in_craft_may_be_left_out():
    """As the docstring of Craft says."""
    action = textcraft.TEXTCRAFT.grammar.parse("craft oak planks using 1 oak logs")
    assert (action.item, action.ingredients) == (PLANKS.item, PLANKS.ingredients)


@each_pair
def test_a_long_thought_hides_nothing(environment, action_format):
    """A reply may be longer than an action may be."""
    action = environment.grammar.examples[0]
    thought = "This calls for thought.\n" * (2 * MAX_ACTION_CHARS // 24)
    assert action_format.parse(action_format.render(action, thought), environment.grammar) == action
