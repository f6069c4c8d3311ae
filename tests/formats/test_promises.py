"""What every format reads, whatever stands around the action; each reply here is one that models write."""

from __future__ import annotations

import pytest

from agentgym_gym import FORMATS, environments, errors, find

MAZE, TEXTCRAFT, SQLGYM = (find(name).grammar for name in ("Maze", "TextCraft", "SQLGym"))
all_formats = pytest.mark.parametrize("name", FORMATS)


@all_formats
@pytest.mark.parametrize(
    "reply",
    [
        "<|channel|>final<|message|>move up",
        "<|channel|>final<|message|>Action: move up",
        "<action>I go up:\nmove up</action>",
        "<action>move up\nso I get there</action>",
        "<action>move up\nmove up</action>",
        "Action: <b>move up</b>",
        "<b>move up</b>",
        "<action><b>move up</b></action>",
    ],
)
def test_an_action_is_read_in_every_format(name, reply):
    assert str(FORMATS[name].parse(reply, MAZE)) == "move up"


@all_formats
def test_a_call_in_the_words_of_mcp_is_a_call(name):
    call = '{"method": "tools/call", "params": {"name": "%s", "arguments": {"count": 1, "item": "oak log"}}}'
    assert str(FORMATS[name].parse(call % "get", TEXTCRAFT)) == "get 1 oak log"
    with pytest.raises(errors.UnknownAction, match="'fetch' is not one of the functions"):
        FORMATS[name].parse(call % "fetch", TEXTCRAFT)


@all_formats
def test_different_actions_in_one_mark_are_named(name):
    with pytest.raises(errors.ManyActions, match="'move up' and 'move down'"):
        FORMATS[name].parse("<action>move up\nmove up\nmove down</action>", MAZE)


@pytest.mark.parametrize("label", ["- Action:", "  Action:", "**Action:**", "1. Action:", "### Action:"])
def test_a_label_may_be_set_off(label):
    assert str(FORMATS["react"].parse(f"Thought: I go.\n{label} move left", MAZE)) == "move left"


@pytest.mark.parametrize("reply", ["Now Action: move up.\n", "I think the next Action: move up"])
def test_a_word_within_a_sentence_is_no_label(reply):
    with pytest.raises(errors.NoAction):
        FORMATS["react"].parse(reply, MAZE)


@pytest.mark.parametrize("quote", ["`", "'", '"'])
def test_a_tag_that_is_quoted_is_no_mark(quote):
    mentioned = f"First {quote}<action>{quote} is written.\n"
    assert str(FORMATS["tags"].parse(f"{mentioned}<action>move up</action>", MAZE)) == "move up"
    with pytest.raises(errors.NoAction):
        FORMATS["tags"].parse(f"{mentioned}move up", MAZE)


@pytest.mark.parametrize("code", ['```move("up")```', 'I go: ``` move("up") ```', '```\nmove("up")\n```'])
def test_a_block_of_code_may_be_one_line(code):
    assert str(FORMATS["code_as_action"].parse(code, MAZE)) == "move up"


def test_a_call_in_tags_of_its_own_may_follow_a_label():
    call = "<function=get><parameter=count>1</parameter><parameter=item>oak log</parameter></function>"
    assert str(FORMATS["react"].parse(f"Action: {call}", TEXTCRAFT)) == "get 1 oak log"


@pytest.mark.parametrize(
    "reply",
    [
        '<tool_call>[move(direction="up"), move(direction="down")]</tool_call>',
        '{"name": "move", "arguments": {"direction": "up"}}\n<tool_call>[move(direction="down")]</tool_call>',
    ],
)
def test_the_call_after_the_first_is_listed_as_ignored(reply):
    found = FORMATS["function_calling"].read(reply, MAZE)
    assert (str(found.action), found.ignored) == ("move up", ("move down",))


@all_formats
@pytest.mark.parametrize("environment", [each.name for each in environments()])
def test_instructions_name_a_fence_only_where_there_is_one(name, environment):
    grammar = find(environment).grammar
    instructions = FORMATS[name].instructions(grammar)
    fence = grammar.style.fence
    assert "```None" not in instructions
    assert (fence is not None and name != "function_calling") or "to be written between" not in instructions
