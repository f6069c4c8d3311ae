"""No reply makes anything happen: code is read as one call with plain values, and never run."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
import warnings

import pytest

from agentgym_gym import FORMATS
from clock import cpu_seconds
from every_format import ENVIRONMENTS, THOROUGH, each_environment, read

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
    """Code that would do something; of two actions, but for the first environment. Thorough is of all."""
    whole_house = THOROUGH or environment is ENVIRONMENTS[0]
    for action in environment.grammar.examples[: None if whole_house else 2]:
        for expression in EVIL:
            if expression not in HARMLESS:
                yield from calls_with(action, expression)
        call = f"{action.name()}({', '.join(map(repr, action.to_json().values()))})"
        yield from (whole.replace("CALL", call) for whole in WHOLE)


@pytest.mark.exhaustive  # much text is compiled
@each_environment
@pytest.mark.filterwarnings("default:invalid escape sequence")
def test_code_is_one_call_with_plain_values(environment):
    for code in evil_codes(environment):
        if environment.grammar.knows(code):
            continue  # such as [[finish()]]: as the whole reply it is the text of an action

        def look(code=code):
            for reply in (code, f"```python\n{code}\n```"):
                assert read(FORMATS["code_as_action"], reply, environment.grammar) is None, code[:200]

        assert cpu_seconds(look, 1.0) <= 1.0, code[:200]


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
def test_reading_code_does_not_change_the_warnings_of_others(environment):
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
    most = 400 if THOROUGH else 100 if environment is ENVIRONMENTS[0] else 50
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


@pytest.mark.parametrize(
    "environments",
    [
        pytest.param(ENVIRONMENTS[:1], marks=pytest.mark.slow),
        *(pytest.param(ENVIRONMENTS[n::3], marks=pytest.mark.exhaustive) for n in (1, 2, 3)),
    ],
    ids=lambda several: several[0].name,
)
def test_no_reply_is_executed(environments, tmp_path):
    """Every way of asking for it, read in a process that would report any import, file, call of exec…"""
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
