"""Guess a number from hints. The seed selects the number; there is no option for it."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from typing import Any

from seeded_defects.text_game import SolutionPlayer, TextGame

NUMBERS = 5000
"""The numbers are 1 to this."""


def number_of(task: int) -> int:
    """Return the number of a task; tasks below `NUMBERS` have different ones."""
    return (task * 1009 + 271) % NUMBERS + 1


def solution(task: int) -> list[str]:
    """Return the guesses of a binary search."""
    low, high, guesses = 1, NUMBERS, list[str]()
    while not guesses or int(guesses[-1].split()[1]) != number_of(task):
        middle = (low + high) // 2
        guesses.append(f"guess {middle}")
        low, high = (middle + 1, high) if middle < number_of(task) else (low, middle - 1)
    return guesses


class NumberGame(TextGame):
    """Guess a number in 15 turns: the limit of the registration only."""

    metadata: dict[str, Any] = {"render_modes": []}  # noqa: RUF012 - as gymnasium has it
    system_prompt = (
        f"Guess a number from 1 to {NUMBERS}. After each guess you learn whether the number is higher or "
        "lower.\nAction:\nguess N, where N is your number in digits"
    )

    def chosen_task(self, seed: int | None, options: Mapping[str, Any]) -> int:
        """Return the seed as the task."""
        return seed % NUMBERS if seed is not None else int(self.np_random.integers(NUMBERS))

    def goal(self) -> str:
        """Return the goal with the round, which has no hint."""
        return f"Find the number of round {self.task}."

    def start(self, task: int) -> str:
        """Start a round."""
        self.number = number_of(task)
        return f"Round {task}. I have a number from 1 to {NUMBERS}."

    def play(self, action: str) -> tuple[str, float]:
        """Compare a guess."""
        match = re.fullmatch(r"guess ([0-9]{1,6})", action.strip())
        if match is None:
            return "Guess with: guess N", 0.0
        guess = int(match[1])
        self.won = guess == self.number
        if self.won:
            return "That is the number.", 1.0
        return ("It is higher." if guess < self.number else "It is lower."), 0.0


class AwaitedNumberGame(NumberGame):
    """The same game with coroutine functions."""

    async def reset(self, **arguments: Any) -> Any:  # type: ignore[override]
        """Start a round."""
        await asyncio.sleep(0)
        return super().reset(**arguments)

    async def step(self, action: str) -> Any:  # type: ignore[override]
        """Play one action."""
        await asyncio.sleep(0.001)
        return super().step(action)


class Solver(SolutionPlayer):
    """Searches by halves."""

    solution = staticmethod(solution)
