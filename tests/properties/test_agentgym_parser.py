"""AgentGym's own client as it was recorded, beside the two parsers: the one like it and the better one."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from agentgym_gym import FORMATS, AgentGymEnv, errors
from agentgym_gym.envs.textcraft import TEXTCRAFT, Craft, Get, Ingredient, Inventory

BESIDE = Path(__file__).resolve().parents[3] / "shared" / "wire"
RECORDING = Path(os.environ.get("AGENTGYM_WIRE") or BESIDE) / "client_parse.jsonl"

if not RECORDING.is_file():
    pytest.skip(f"AgentGym's client was recorded in {RECORDING}, which is not here", allow_module_level=True)

with RECORDING.open(encoding="utf-8") as lines:
    ROWS = [row for line in lines if (row := json.loads(line))["env"] == "TextCraft"]

# The actions that were tried, and what each means; `next` is the one tried after it.
ACTIONS = {
    "craft 4 oak planks using 1 oak log": Craft(4, "oak planks", (Ingredient(1, "oak log"),)),
    "get 9 emerald": Get(9, "emerald"),
    "get 1 minecraft:emerald_block": Get(1, "emerald block"),
    "inventory": Inventory(),
}
NEXT = dict(zip(ACTIONS, [*list(ACTIONS)[1:], next(iter(ACTIONS))], strict=True))

# The ways of writing them that were tried, and what the default parser makes of each: the action, where only
# one thing can be meant, else the kind of error.
READ = "read"
WAYS = {
    "Thought:\nI think.\n\nAction:\n{action}": READ,
    "Thought: I think.\nAction: {action}": READ,
    "Action: {action}": READ,
    "Action:{action}": READ,
    "  Action:   {action}   ": READ,
    "Thought:\nx\n\nAction:\n\n{action}": READ,
    "thought: x\naction: {action}": READ,
    "思考：好\n\nAction:\n{action}": READ,
    "<think>x</think>\nAction:\n{action}": READ,
    "Thought:\nmy Action: is good\n\nAction:\n{action}": READ,
    "Thought:\nx\n\nAction:\n{action}\nObservation: done": READ,
    "Thought:\nx\n\nAction:\n{action}</s>": READ,
    "Thought:\nx\n\nAction:\n{action}<|im_end|>": READ,
    'Thought:\nx\n\nAction:\n"{action}"': READ,
    "Thought:\nx\n\nAction:\n`{action}`": READ,
    "Thought:\nx\n\nAction:\n```\n{action}\n```": READ,
    "Thought:\nx\n\nAction:\n**{action}**": READ,
    "Thought:\nx\n\nAction:\n{ACTION}": READ,
    "Thought:\nx\r\n\r\nAction:\r\n{action}\r\n": READ,
    "Thought:\nx\n\nAction:\n{action}\n\nAction:\n{action}": errors.ManyActions,
    "Thought:\nx\n\nAction:\n{action}\n{next}": errors.ManyActions,
    "{action}": errors.NoAction,
    "": errors.NoAction,
    "Thought:\nonly a thought": errors.NoAction,
    "[[ {action} ]]": errors.NoAction,
    "> think: x\n> {action}": errors.NoAction,
    "<action>{action}</action>": errors.NoAction,
}

EXPECTED = {
    way.format(action=text, ACTION=text.upper(), next=NEXT[text]): action if rule is READ else rule
    for way, rule in WAYS.items()
    for text, action in ACTIONS.items()
}

each_row = pytest.mark.parametrize("row", ROWS, ids=lambda row: repr(row["text"]))


def test_every_row_has_a_rule_and_every_rule_a_row():
    assert {row["format"] for row in ROWS} == {"react"}
    assert {row["text"] for row in ROWS} == set(EXPECTED)


@each_row
def test_the_default_parser(row):
    expected = EXPECTED[row["text"]]
    if isinstance(expected, type):
        with pytest.raises(expected) as raised:
            FORMATS["react"].parse(row["text"], TEXTCRAFT.grammar)
        assert type(raised.value) is expected
    else:
        assert FORMATS["react"].parse(row["text"], TEXTCRAFT.grammar) == expected


@each_row
@pytest.mark.parametrize("on_unknown", ["forward", None])
def test_the_parser_like_agentgyms(row, on_unknown, new_world, monkeypatch):
    """What arrives at the server is what AgentGym's client sent it."""
    world = new_world()
    arrived = []
    pass_on = world.transport.handle_request

    def note(request):
        if request.url.path == "/step":
            arrived.append(json.loads(request.content)["action"])
        return pass_on(request)

    monkeypatch.setattr(world.transport, "handle_request", note)
    env = AgentGymEnv(
        "TextCraft", server=world.url, transport=world.transport, parser="agentgym", on_unknown=on_unknown
    )

    class Caller:
        lease = None

    world.transport.begin(Caller)
    env.reset(options={"task_id": 0})
    observation, reward, terminated, truncated, info = env.step(row["text"])
    env.close()
    assert arrived == row["sent"]
    assert (reward, terminated, truncated) == (0.0, False, False)
    if row["sent"]:
        assert [info["action"]] == row["sent"]
        assert "parse_error" not in info
    else:
        assert info["action"] is None
        assert info["parse_error"] == "ManyActions"
        assert "more than one" in observation
