"""The thought before the action of a reply, as models write it."""

from __future__ import annotations

import pytest

from agentgym_gym import find
from agentgym_gym.formats import get_format

MAZE = find("Maze")
CALL = '{"function_name": "move", "arguments": {"direction": "up"}}'


@pytest.mark.parametrize(
    ("action_format", "reply", "thought"),
    [
        ("react", "Thought:\nI go up.\n\nAction: \nmove up", "I go up."),
        ("react", "Thought: I go up.\nAction: move up", "I go up."),
        ("react", "I go up.\n\nAction:\nmove up", "I go up."),
        ("react", "**Thought:** I go up.\r\n**Action:** move up", "I go up."),
        (
            "react",
            "<think>\nWalls.\n</think>\n\nThought: I go up.\nAction: move up",
            "Walls.\nI go up.",
        ),
        ("react", "Thought: my last Action: failed\nAction: move up", "my last Action: failed"),
        ("react", "I go up. Action: move up", "I go up."),
        ("react", "Action:\nmove up", ""),
        ("react", CALL, ""),
        ("tags", "<think>I go up.</think>\n<action>move up</action>", "I go up."),
        ("tags", "<think>I</think>\n<think>go.</think><action>move up</action>", "I\ngo."),
        ("tags", "I go up.\n<action>move up</action>", "I go up."),
        ("adapt", "> think: I go up.\n> move up", "I go up."),
        ("adapt", "> think: I look.\n> think: I go up.\n> move up", "I look.\nI go up."),
        ("adapt", "> move up", ""),
        ("bare", "move up", ""),
        (
            "function_calling",
            '{"thought": "I go up.", "function_name": "move", "arguments": {"direction": "up"}}',
            "I go up.",
        ),
        ("function_calling", CALL, ""),
        ("function_calling", f"I go up.\n<tool_call>\n{CALL}\n</tool_call>", "I go up."),
        ("function_calling", f"I go up.\n{CALL}", "I go up."),
        ("function_calling", f"{{x, y}} is free.\n<tool_call>\n{CALL}\n</tool_call>", "{x, y} is free."),
        ("code_as_action", "```python\n# I go\n#up.\nmove('up')\n```", "I go\nup."),
        ("code_as_action", "I think.\n```python\n# I go up.\nmove('up')\n# done\n```", "I think.\nI go up."),
        ("code_as_action", "# I go up.\nmove('up')", "I go up."),
        ("tool_calls", f"I go up.\n\n<tool_call>\n{CALL}\n</tool_call>", "I go up."),
        ("tool_calls", CALL, ""),
    ],
)
def test_the_thought_of_a_reply(action_format, reply, thought):
    written = get_format(action_format)
    action = written.parse(reply, MAZE.grammar)
    assert str(action) == "move up"
    assert written.thought_of(reply, action) == thought


def test_a_bare_reply_has_no_thought():
    assert get_format("bare").thought_of("I go up.\nmove up", MAZE.grammar.parse("move up")) == ""


def test_the_last_label_is_the_action_s():
    """As AgentGym's client has it; the text before it is the thought."""
    action = MAZE.grammar.examples[0]
    reply = f"Thought: I said\nAction: move left\nNow:\nAction: {action}"
    assert get_format("react").thought_of(reply, action) == "I said\nAction: move left\nNow:"
