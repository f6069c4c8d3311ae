"""Marks of other kinds than the format's own, and the errors of marks that hold no action."""

from __future__ import annotations

import pytest

from agentgym_gym import FORMATS, errors, find


@pytest.mark.parametrize(
    ("environment", "reply", "sent"),
    [
        ("SQLGym", "The table:\n```\nsinger(id, name)\n```\nSo:\n```sql\nSELECT 1\n```", "SELECT 1"),
        ("SQLGym", "```\nsinger(1)\n```\nSo:\n```sql\nSELECT 1\n```", "SELECT 1"),
        ("TextCraft", "I run\n```\nmake(1)\n```\n<action>get 1 stick</action>", "get 1 stick"),
        ("TextCraft", "I run\n```\nget(1, 'stick')\n```\n<action>inventory</action>", "get 1 stick"),
    ],
)
def test_code_without_a_function_of_the_environment_is_no_mark(environment, reply, sent):
    assert str(FORMATS["react"].parse(reply, find(environment).grammar)) == sent


@pytest.mark.parametrize("name", FORMATS)
def test_an_object_with_two_actions_is_refused(name):
    reply = '{"action": "get 1 stick", "command": "%s"}'
    grammar = find("TextCraft").grammar
    assert str(FORMATS[name].parse(reply % "get 1 stick", grammar)) == "get 1 stick"
    with pytest.raises(errors.ManyActions, match="'get 1 stick' and 'get 2 stick'"):
        FORMATS[name].parse(reply % "get 2 stick", grammar)


@pytest.mark.parametrize("inside", ["<search>a</answer>", f"<search>{'a' * 1_001}</search>"])
@pytest.mark.parametrize("mark", ["{}", "Action: {}", "<action>{}</action>"])
def test_the_error_of_an_action_with_its_own_tags_is_that_of_the_whole(inside, mark):
    """The tags belong to the action: they are no markup around an action of another kind."""
    with pytest.raises(errors.BadArguments, match="query: "):
        FORMATS["react"].parse(mark.replace("{}", inside), find("SearchQA").grammar)


def test_an_ignored_call_that_cannot_be_read_is_listed_as_it_is_written():
    reply = '<tool_call>{"name": "inventory"}</tool_call><tool_call>{"name": "get", "arguments": {"co'
    found = FORMATS["function_calling"].read(reply, find("TextCraft").grammar)
    assert (str(found.action), found.ignored) == ("inventory", ('{"name": "get", "arguments": {"co',))
