"""Trajectories made by hand, in the forms of their files."""

from __future__ import annotations

from hypothesis import strategies as st

import report_runs
from agentgym_gym.data import Message, Trajectory

PROMPT = "You are in a maze."
ENTRY = {
    "conversations": [
        {"from": "human", "loss": None, "value": PROMPT},
        {"from": "gpt", "loss": False, "value": "Ok."},
        {"from": "human", "loss": None, "value": "There are walls to your left."},
        {"from": "gpt", "loss": True, "value": "Thought:\nI go up.\n\nAction: \nmove up"},
        {"from": "human", "loss": None, "value": "Success"},
    ],
    "item_id": "maze_3",
}
"""An entry as AgentTraj has it."""

FACTS = {
    "env_id": "agentgym/Maze-v0",
    "agent": "model",
    "options": {"action_format": "react", "parser": "default"},
    "system_prompt": PROMPT,
}
"""The metadata in the folder of a run."""


def episode(task_id=0, said="Thought:\nUp.\n\nAction:\nmove up", **fields):
    """A record of one turn of Maze, which succeeded."""
    texts = ("There are walls to your left.", said, "Success")
    roles = ("user", "assistant", "user")
    usual = {
        "env_id": FACTS["env_id"],
        "agent": FACTS["agent"],
        "goal": None,
        "success": True,
        "return_": 1.0,
        "rewards": (1.0,),
        "turns": 1,
        "messages": tuple({"role": role, "content": text} for role, text in zip(roles, texts, strict=True)),
        "steps": ({"action": "move up"},),
    }
    return report_runs.episode(task_id, **{**usual, **fields})


_texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
_json = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False) | _texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_texts, inner, max_size=3),
    max_leaves=5,
)
# No name that a file has for something else.
_extras = st.dictionaries(_texts.map("x-{}".format), _json, max_size=2)


@st.composite
def trajectories(draw):
    """Trajectories of Maze with any messages."""
    loss = st.none() | st.booleans()
    message = st.builds(Message, st.sampled_from(["user", "assistant"]), _texts, loss, _extras)
    messages = draw(st.lists(message, min_size=1, max_size=6))
    if draw(st.booleans()):
        messages.insert(0, Message("system", draw(_texts), draw(loss), draw(_extras)))
    return Trajectory(
        "agentgym/Maze-v0",
        draw(st.integers(0, 24)),
        tuple(messages),
        draw(st.none() | st.floats(allow_nan=False, allow_infinity=False)),
        draw(loss),
        draw(st.sampled_from([None, "react", "agentgym"])),
        draw(st.sampled_from([None, "maze_3"])),
        extra=draw(_extras),
    )
