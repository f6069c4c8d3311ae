"""Replies of model families are read, drafts in their reasoning are not, and users can add a notation."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from hypothesis import settings

from agentgym_gym import FORMATS, environments, errors, find
from agentgym_gym.formats import Dialect, get_format, register_dialect
from every_format import failed, verdict
from model_families import MODEL_FAMILIES

FULL = settings.default.max_examples >= 25  # HYPOTHESIS_PROFILE=full
ENVIRONMENTS = environments()
NATIVE = get_format("tool_calls")

each_family = pytest.mark.parametrize("name", MODEL_FAMILIES)
each_format = pytest.mark.parametrize("action_format", FORMATS.values(), ids=lambda each: each.name)


def cases(number):
    """Yield environments with an action and another one; a plain run has four of them."""
    for place, environment in enumerate(ENVIRONMENTS):
        if FULL or (place - number) % 4 == 0:
            examples = environment.grammar.examples
            for at in range(len(examples) if FULL else 1):
                action = examples[(at + number) % len(examples)]
                yield environment, action, examples[(at + number + 1) % len(examples)]


@each_family
def test_native_calls_are_read_and_none_in_reasoning_is(name):
    family, failures, count = MODEL_FAMILIES[name], [], 0
    for environment, action, other in cases([*MODEL_FAMILIES].index(name)):
        plain = json.dumps({"name": other.name(), "arguments": other.to_json()})
        own = family.call_of(other.name(), other.to_json())
        for draft in ("", plain, *(() if "<|channel|>" in own else (own,))):
            if draft and not family.think:
                continue
            reply = family.reply_with_calls([(action.name(), action.to_json())], draft)
            count += 1
            if (found := verdict(NATIVE, reply, environment.grammar, action)) != "read":
                failures.append((found, reply))
    assert not failures, failed(failures, count)


@each_format
@each_family
def test_answers_in_text_are_read_and_drafts_are_not(name, action_format):
    family, failures, count = MODEL_FAMILIES[name], [], 0
    for environment, action, other in cases([*MODEL_FAMILIES].index(name)):
        draft = action_format.render(other).replace("<think>", "").replace("</think>", "")
        for thought in ("", draft) if family.think else ("",):
            reply = family.reply(action_format.render(action), thought)
            count += 1
            if (found := verdict(action_format, reply, environment.grammar, action)) != "read":
                failures.append((found, reply))
    assert not failures, failed(failures, count)


@pytest.mark.parametrize("name", ["Kimi K3", "Solar Open 2", "Gemma 4", "DeepSeek V4", "MiniMax M3"])
def test_further_calls_are_listed(name):
    grammar = find("TextCraft").grammar
    calls = [("get", {"count": 1, "item": "stick"}), ("inventory", {})]
    found = NATIVE.read(MODEL_FAMILIES[name].reply_with_calls(calls), grammar)
    assert (str(found.action), found.ignored) == ("get 1 stick", ("inventory",))


TOKENS = [
    *("<|new_end|>", "<｜fin｜>", "[|done|]", "<|close|>", "<|end_of_box|>", "[|endofturn|]", "<turn_end|>"),
    *("<|a|><|b|>\n", "<|im:end|>", "<|end|><|x_y|>"),
]


@each_format
@pytest.mark.parametrize("token", TOKENS)
def test_an_unknown_token_at_the_end_ends_a_reply(action_format, token):
    for name in ("TextCraft", "Wordle", "SciWorld", "WebShop"):
        grammar = find(name).grammar
        action = grammar.examples[0]
        assert action_format.parse(action_format.render(action) + token, grammar) == action


CHANNELS = [
    *(
        "<|reasoning_start|>{}<|reasoning_end|>",
        "[|think|]{}[|/think|]",
        "<｜begin_thought｜>{}<｜end_thought｜>",
    ),
    *("<|inner_plan|>{}<|/inner_plan|>", "<|thinking>{}<thinking|>", "<x:thought>{}</x:thought>"),
    *("<|thinking|>{}<|response|>", "<|channel|>thoughts<|message|>{}<|end|><|channel|>final<|message|>"),
]


@pytest.mark.parametrize("channel", CHANNELS)
@pytest.mark.parametrize("name", ["react", "tags", "adapt", "bare"])
def test_a_draft_in_an_unknown_channel_is_not_played(name, channel):
    grammar = find("Maze").grammar
    draft, action = grammar.parse("move left"), grammar.parse("move up")
    reply = channel.format(FORMATS[name].render(draft)) + FORMATS[name].render(action)
    assert FORMATS[name].parse(reply, grammar) == action
    with pytest.raises(errors.NoAction):
        FORMATS[name].parse(channel.partition("{}")[0] + FORMATS[name].render(draft), grammar)


# ---------------------------------------------------------------------------------------- notations of users

PROGRAM = """
import sys
from agentgym_gym import FORMATS, find
from agentgym_gym.formats import Dialect, register_dialect
if {registers}:
    register_dialect({dialect})
found = FORMATS["function_calling"].read(sys.argv[1], find("TextCraft").grammar)
print(found.action, found.ignored)
"""
DIALECT = r"""Dialect(
    models="a model of ours",
    tag=r"<\|do\|>(?P<name>\w+)",
    argument=r"<\|of\|>(?P<key>\w+)=",
    argument_end=r"(?=<\|(?:of|done)\|>)",
    end=r"<\|done\|>",
    reasoning=("<|hm|>", "<|mh|>"),
    ends=("<stop here>",),
)"""
REPLY = (
    "<|hm|><|do|>inventory<|done|><|mh|><|do|>get<|of|>count=2<|of|>item=oak logs<|done|>"
    "<|do|>inventory<|done|><stop here><|do|>get<|of|>count=3<|of|>item=oak logs<|done|>"
)


def test_a_registered_dialect_is_read():
    program = PROGRAM.format(registers=True, dialect=DIALECT)
    done = subprocess.run([sys.executable, "-c", program, REPLY], capture_output=True, text=True, check=True)
    assert done.stdout == "get 2 oak logs ('inventory',)\n"


def test_a_dialect_of_a_package_is_read(tmp_path, monkeypatch):
    info = tmp_path / "ours-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: ours\nVersion: 1\n")
    (info / "entry_points.txt").write_text("[agentgym.dialects]\nours = our_dialect:DIALECT\n")
    module = f"from agentgym_gym.formats import Dialect\nDIALECT = {DIALECT}\n"
    (tmp_path / "our_dialect.py").write_text(module)
    monkeypatch.syspath_prepend(tmp_path)
    path = {"PYTHONPATH": ":".join(filter(None, sys.path))}
    program = PROGRAM.format(registers=False, dialect="None")
    done = subprocess.run(
        [sys.executable, "-c", program, REPLY], capture_output=True, text=True, check=True, env=path
    )
    assert done.stdout == "get 2 oak logs ('inventory',)\n"


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"tag": "("}, "is not a regular expression"),
        ({"tag": r"<f (\w+)>"}, "a pattern with the groups"),
        ({"head": "<f>"}, "a pattern with the groups"),
        ({"python": "(?P<name>x)"}, "a pattern with the groups"),
        ({"tag": r"<(?P<name>\w+)", "argument": r"(?P<key>\w+)="}, "given together with"),
        ({"ends": ("stop",)}, "a mark of at most 40 characters"),
        ({"frames": ("<" + "x" * 40,)}, "a mark of at most 40 characters"),
    ],
)
def test_a_dialect_that_cannot_be_used_is_refused(given, words):
    with pytest.raises(errors.BadOption, match=words):
        register_dialect(Dialect(models="x", **given))
