"""MiniGrid: a key, a locked door and a goal, seen from above as letters."""

from __future__ import annotations

import gymnasium
from minigrid.core.constants import IDX_TO_OBJECT, STATE_TO_IDX
from minigrid.wrappers import FullyObsWrapper

from agentgym_gym.rollout import TextAdapter

ACTIONS = {"left": 0, "right": 1, "forward": 2, "pickup": 3, "drop": 4, "toggle": 5, "done": 6}
LETTERS = {"empty": ".", "wall": "#", "key": "k", "door": "D", "goal": "G"}


def letter(cell):
    name, _, state = IDX_TO_OBJECT[cell[0]], cell[1], cell[2]
    if name == "agent":
        return ">v<^"[state]
    if name == "door" and state == STATE_TO_IDX["open"]:
        return "_"
    return LETTERS[name]


def observe(observation):
    columns = observation["image"].tolist()
    rows = ["".join(letter(cell) for cell in row) for row in zip(*columns, strict=True)]
    return "\n".join([observation["mission"], *rows])


def make(**kwargs):
    env = gymnasium.make("MiniGrid-DoorKey-5x5-v0", **kwargs)
    prompt = f"Reply with one of {', '.join(ACTIONS)}. You are the arrow; D is a locked door, _ an open one."
    return TextAdapter(FullyObsWrapper(env), observe=observe, act=ACTIONS, system_prompt=prompt)


gymnasium.register("minigrid_text/DoorKey-v0", make)
