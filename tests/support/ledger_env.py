"""A text environment with an account of everything that it is sent."""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from typing import Any

import gymnasium

TURNS = 3

made: Counter[int] = Counter()
"""The number of environments of each task."""

closed: Counter[int] = Counter()

actions: dict[int, list[str]] = defaultdict(list)
"""The actions of each task, in order."""


def clear() -> None:
    made.clear()
    closed.clear()
    actions.clear()


class Ledger(gymnasium.Env):
    """Ends after some turns, each of which pays 1. Its methods are coroutines."""

    observation_space = action_space = gymnasium.spaces.Text(1 << 16)

    def __init__(self, task: int) -> None:
        self.task = task
        self.turns = 0
        made[task] += 1

    async def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None):
        await asyncio.sleep(0)
        return f"Task {self.task}.", {}

    async def step(self, action: str):
        actions[self.task].append(action)
        self.turns += 1
        await asyncio.sleep(0)
        return f"Turn {self.turns} of task {self.task}.", 1.0, self.turns == TURNS, False, {}

    async def close(self) -> None:
        await asyncio.sleep(0)
        closed[self.task] += 1


gymnasium.register("test/Ledger-v0", Ledger, disable_env_checker=True, order_enforce=False)
