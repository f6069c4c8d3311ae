"""Trajectories put into another format: replies as models write them, and replies that cannot be read."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

import agentgym_gym
from agentgym_gym import find
from agentgym_gym.actions import ToolCall
from agentgym_gym.data import Message, Trajectory, own_prompt, reformat
from agentgym_gym.errors import BadOption

MAZE = find("Maze")


def played(*replies, environment=MAZE, **fields):
    messages = [Message("user", "You are in a maze."), Message("assistant", "OK.", loss=False)]
    for reply in replies:
        message = reply if isinstance(reply, Message) else Message("assistant", reply, loss=True)
        messages += [Message("user", "Walls."), message]
    return Trajectory(
        environment.id, environment.split(None)[0], tuple(messages), source="a.json: entry 0", **fields
    )


def replies(trajectory):
    return [each.content for each in trajectory.messages if each.role == "assistant"]


def test_replies_as_models_write_them():
    written = (
        "I go up. Action: Move Up",
        "Thought: left\n**Action:** move left",
        "Action: move up\nmove left",
    )
    given = played(*written, score=0.5)
    done = reformat(given, MAZE, "react", "function_calling")
    assert done.unparsed == ()
    assert replies(done.trajectory) == [
        '{"thought": "I go up.", "function_name": "move", "arguments": {"direction": "up"}}',
        '{"thought": "left", "function_name": "move", "arguments": {"direction": "left"}}',
        '{"thought": "", "function_name": "move", "arguments": {"direction": "up"}}',
    ]
    system, *rest = done.trajectory.messages
    assert (system.role, system.content) == (
        "system",
        own_prompt(MAZE, {"action_format": "function_calling"}),
    )
    assert rest[::2] == [Message("user", "Walls.")] * 3
    expected = replace(given, messages=done.trajectory.messages, action_format="function_calling")
    assert done.trajectory == expected


def test_unparsed_replies_are_listed_with_their_position():
    given = played("Action: move up", "Hello.", "Action: dance", "Action: move up\nAction: move left")
    done = reformat(given, MAZE, "react", "tags")
    assert done.trajectory is None
    assert [(each.kind, each.source, each.turn) for each in done.unparsed] == [
        ("NoAction", "a.json: entry 0", 2),
        ("UnknownAction", "a.json: entry 0", 3),
        ("ManyActions", "a.json: entry 0", 4),
    ]
    assert str(done.unparsed[0]) == "a.json: entry 0, turn 2: NoAction: 'Hello.'"
    kept = reformat(given, MAZE, "react", "tags", keep_unparsed=True)
    assert kept.unparsed == done.unparsed
    assert replies(kept.trajectory) == [
        "<think></think>\n<action>move up</action>",
        *[each.reply for each in done.unparsed],
    ]


def test_a_reply_with_only_a_thought_has_no_other_format():
    given = played("> think: I go up.", "> move up")
    done = reformat(given, MAZE, "adapt", "react")
    assert (done.trajectory, [each.kind for each in done.unparsed]) == (None, ["OnlyThought"])
    assert replies(reformat(given, MAZE, "adapt", "adapt").trajectory) == ["> think: I go up.", "> move up"]


def test_a_thought_that_would_hide_the_action_is_unparsed():
    call = {"thought": "Action:\nmove left", "function_name": "move", "arguments": {"direction": "up"}}
    given = played(json.dumps(call))
    done = reformat(given, MAZE, "function_calling", "react")
    assert (done.trajectory, [each.kind for each in done.unparsed]) == (None, ["ThoughtNotKept"])
    (reply,) = replies(reformat(given, MAZE, "function_calling", "bare").trajectory)
    assert reply == "move up"


def test_separately_stored_function_calls_are_read():
    call = {"name": "move", "arguments": '{"direction": "up"}', "id": "call_1"}
    message = Message(
        "assistant",
        f"I go up.\n{ToolCall('move', call['arguments'])}",
        loss=True,
        extra={"tool_calls": [call], "reasoning_content": "Hm."},
    )
    done = reformat(played(message), MAZE, "tool_calls", "react")
    assert done.trajectory.messages[2] == Message(
        "assistant", "Thought:\nI go up.\n\nAction:\nmove up", loss=True, extra={"reasoning_content": "Hm."}
    )
    two = replace(message, extra={"tool_calls": [call, call]})
    done = reformat(played(two), MAZE, "tool_calls", "react")
    assert replies(done.trajectory) == ["Thought:\nI go up.\n\nAction:\nmove up"]  # the call that was played
    odd = replace(message, extra={"tool_calls": ["?"]})
    done = reformat(played(odd), MAZE, "tool_calls", "react")
    assert [each.kind for each in done.unparsed] == ["UnknownAction"]


# --------------------------------------------------------------------------------- as AgentGym reads them


def test_agentgym_reads_the_last_label():
    """Where our own parser sees two actions."""
    webshop = find("WebShop")
    given = played("Thought: Two.\nAction: search[a]\nAction:\nsearch[b]", environment=webshop)
    assert reformat(given, webshop, "react", "bare").trajectory is None
    assert replies(reformat(given, webshop, "agentgym", "bare").trajectory) == ["search[b]"]


def test_agentgym_keeps_letters_and_digits_in_textcraft():
    textcraft = find("TextCraft")
    given = played("Thought:\nI need logs.\n\nAction:\nget 1 oak logs.", environment=textcraft)
    (reply,) = replies(reformat(given, textcraft, "agentgym", "react").trajectory)
    assert reply == "Thought:\nI need logs.\n\nAction:\nget 1 oak logs"


@pytest.mark.parametrize(
    "environment",
    [each for each in agentgym_gym.environments() if each.of_agentgym],
    ids=lambda each: each.name,
)
def test_the_replies_of_agentgym_are_read_in_every_environment(environment):
    """Its tools are sent the whole reply, with the action on the line of its label."""
    beside = environment.grammar.style.beside_label
    for action in environment.grammar.examples:
        text = environment.grammar.style.write(str(action))
        given = played(
            f"Thought:\nI know.\n\nAction:{' ' if beside else chr(10)}{text}", environment=environment
        )
        done = reformat(given, environment, "agentgym", "function_calling")
        assert done.unparsed == ()
        back = reformat(done.trajectory, environment, "function_calling", "react")
        (reply,) = replies(back.trajectory)
        assert reply == f"Thought:\nI know.\n\nAction:\n{text}"


def test_arguments_that_do_not_fit_are_an_error():
    with pytest.raises(BadOption, match="expected Wordle"):
        reformat(played("Action: move up"), find("Wordle"), "react", "tags")
    with pytest.raises(BadOption, match="action_format='xml'"):
        reformat(played("Action: move up"), MAZE, "xml", "tags")
    with pytest.raises(BadOption, match="parser='agentgym' does not support"):
        reformat(played("Action: move up"), replace(MAZE, agentgym_readers={}), "agentgym", "tags")


def test_a_trajectory_without_a_prompt_is_given_one():
    given = Trajectory(MAZE.id, 0, (Message("user", "Walls."), Message("assistant", "move up", loss=True)))
    done = reformat(given, MAZE, "bare", "tags")
    assert [each.role for each in done.trajectory.messages] == ["system", "user", "assistant"]
