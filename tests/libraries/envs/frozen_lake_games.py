"""gymnasium's FrozenLake as text: an environment of numbers, drawn from its own generator."""

from __future__ import annotations

import gymnasium

from agentgym_gym.rollout import TextAdapter

ACTIONS = ("left", "down", "right", "up")


def observe(observation):
    row, column = divmod(int(observation), 4)
    return f"You are in row {row}, column {column}."


def act(text):
    named = [word for word in text.lower().replace(".", " ").split() if word in ACTIONS]
    if not named:
        raise ValueError(f"name one of {', '.join(ACTIONS)}")
    return ACTIONS.index(named[-1])


def make(**kwargs):
    prompt = (
        "Cross a frozen lake of 4 rows and 4 columns, from row 0, column 0, to row 3, column 3. The ice is "
        "slippery and has holes. Reply with left, down, right or up."
    )
    return TextAdapter(
        gymnasium.make("FrozenLake-v1", **kwargs), observe=observe, act=act, system_prompt=prompt
    )


gymnasium.register("frozen_lake/FrozenLake-v0", make)
