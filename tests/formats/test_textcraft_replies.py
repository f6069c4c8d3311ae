"""TextCraft's replies one by one: those that mark one action, and the errors of the others."""

from __future__ import annotations

import pytest

from agentgym_gym import FORMATS, errors
from agentgym_gym.actions import Thought
from agentgym_gym.envs import textcraft

STICK = textcraft.Get(1, "stick")
PLANKS = textcraft.Craft(4, "oak planks", (textcraft.Ingredient(1, "oak logs"),))
INVENTORY = textcraft.Inventory()

READ = {
    "bare": {
        "GET 1 Minecraft:Stick.": STICK,
        "`get 1 stick`": STICK,
        "```\nget 1 stick\n```": STICK,
        "```text\nget 1 stick\n```": STICK,
        "```get 1 stick```": STICK,
        "```inventory```": INVENTORY,
        "```\ninventory\n```": INVENTORY,
        "```inventory\n```": INVENTORY,
        "```inventory\nget 1 stick\n```": STICK,  # "inventory" is the language of the fence
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
        "Action:\nget 1 stick\n```\nget 2 stick\n```": STICK,
        "get 1 stick": STICK,
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
        "get 2 stick\n> get 1 stick": STICK,
        "> think: x\nget 1 stick": Thought("x"),
    },
    "function_calling": {
        '{"function_name": "inventory"}': INVENTORY,
        '{"name": "get", "arguments": {"count": "1", "item": "stick"}}': STICK,
        '{"name": "inventory"}{"name": "inventory"}': INVENTORY,
        '{"name": "inventory"}{"name": "look"}': INVENTORY,
        "get 1 stick": STICK,
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
        "get 1 stick": STICK,
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

REFUSED = {
    errors.ManyActions: {
        "react": ["Action: get 1 stick\nAction: get 2 stick"],
        "tags": [
            "<action>get 1 stick</action><think>hm</think><action>get 2 stick</action>",
            "<action>get 1 stick\nget 2 stick</action>",
        ],
        "adapt": [
            "> get 1 stick\n> get 2 stick",
        ],
        "function_calling": [
            '{"name": "inventory"} {} {"name": "get", "arguments": {"count": 1, "item": "stick"}}',
            '[{"name": "inventory"}, {"name": "get", "arguments": {"count": 1, "item": "stick"}}]',
        ],
        "code_as_action": ["```\ninventory()\ninventory()\n```", "```\ninventory(); inventory()\n```"],
    },
    errors.BadArguments: {
        "tags": [
            "<action>craft 0 oak planks using 1 oak logs</action>",
            "<action>craft -1 oak planks using 1 oak logs</action>",
            "<action>craft 2000000 oak planks using 1 oak logs</action>",
            "<action>craft 99999999999999999999 oak planks using 1 oak logs</action>",
            "<action>craft 4 oak planks using oak logs</action>",
            "<action>craft 4 oak planks</action>",
            "<action>get stick</action>",
            "<action>get ٣ stick</action>",
            "<action>get 1 oak logs and 2 sticks</action>",
            "<action>craft 1 beehive using 3 planks and 2 honeycomb</action>",
            "<action>get 1,000 stick</action>",
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
        "tags": ["<action>dance</action>"],
        "react": ["Action:\nI will take it:\n```\nget 1 stick\n```"],
        "code_as_action": ["dance(1)", "dance(x=1)"],
        "function_calling": ['{"function_name": "dance"}', '{"name": "dance", "arguments": {}}'],
    },
    errors.NoAction: {
        "react": ["Action:", "Action: ``"],
        "adapt": ["think: x\nget 1 stick", "- get 1 stick\n- inventory", "get 1 stick.\n`inventory`"],
        "function_calling": ['{"thought": "x"}', '{"name": "dance"}'],
        "code_as_action": ["# nothing", "inventory()\ninventory()", "inventory(); inventory()"],
        "bare": [
            "get 1 stick\nget 2 stick",
            "get 2 stick\n```\nget 1 stick\n```",
            "```\nget 1 stick\n```\nget 2 stick",
            "```\nget 1 stick\n```\n```\nget 2 stick\n```",
            "dance",
        ],
    },
}


@pytest.mark.parametrize(
    ("name", "reply", "expected"),
    [(name, reply, action) for name, replies in READ.items() for reply, action in replies.items()],
)
def test_the_marked_action_is_read(name, reply, expected):
    assert FORMATS[name].parse(reply, textcraft.TEXTCRAFT.grammar) == expected


@pytest.mark.parametrize(
    ("name", "reply", "kind"),
    [
        (name, reply, kind)
        for kind, formats in REFUSED.items()
        for name, replies in formats.items()
        for reply in replies
    ],
)
def test_the_error_of_a_reply_without_one_marked_action(name, reply, kind):
    with pytest.raises(kind) as raised:
        FORMATS[name].parse(reply, textcraft.TEXTCRAFT.grammar)
    assert type(raised.value) is kind


@pytest.mark.parametrize("reply", REFUSED[errors.BadArguments]["tags"])
def test_a_bare_line_that_begins_as_an_action_is_told_what_does_not_fit(reply):
    line = reply.removeprefix("<action>").removesuffix("</action>")
    with pytest.raises(errors.NoAction, match=r"expected '(get|craft) <count> <item>"):
        FORMATS["bare"].parse(line, textcraft.TEXTCRAFT.grammar)


def test_the_number_in_craft_may_be_left_out():
    """As the docstring of Craft says."""
    action = textcraft.TEXTCRAFT.grammar.parse("craft oak planks using 1 oak logs")
    assert (action.item, action.ingredients) == (PLANKS.item, PLANKS.ingredients)
