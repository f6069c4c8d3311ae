"""Small environments for the tests of `agentgym audit`: a sound one, and some that are not."""

from __future__ import annotations

import random
from typing import Any

import gymnasium

from agentgym_gym import TextSpace

MARKUP = '<script>alert(1)</script> \x1b[31mred \u202egnp & "quoted"'
"""A text that a page or a terminal must not obey."""


class SeededDice(gymnasium.Env[str, str]):
    """Guess a number: sound.

    Args:
        text: A text in each observation.
    """

    def __init__(self, text: str = "dice") -> None:
        self.observation_space = self.action_space = TextSpace()
        self._text = text

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[str, dict[str, Any]]:
        super().reset(seed=seed)
        self._number = self._draw()
        return f"Guess a number below 1000. {self._text}", {}

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        won = action == str(self._number)
        return f"It is {self._number}. {self._text}", float(won), True, False, {"success": won}

    def _draw(self) -> int:
        return int(self.np_random.integers(1000))


class UnseededDice(SeededDice):
    """Draws from Python's global generator: two episodes of a task differ."""

    def _draw(self) -> int:
        return random.randrange(1000)  # noqa: S311 - the defect


class BrokenDice(SeededDice):
    """Cannot start an episode."""

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[str, dict[str, Any]]:
        raise RuntimeError(f"no dice: {MARKUP}")


gymnasium.register("audits/Seeded-v0", SeededDice)
gymnasium.register("audits/Unseeded-v0", UnseededDice)
gymnasium.register("audits/Broken-v0", BrokenDice)
