"""Defects of rewards, of success and of the end of an episode."""

from __future__ import annotations

from typing import Any

import numpy as np

from seeded_defects.craft_game import CraftGame
from seeded_defects.key_rooms import KeyRooms
from seeded_defects.price_shop import PriceShop
from seeded_defects.word_game import WordGame

_Step = tuple[str, float, bool, bool, dict[str, Any]]


class OneTurnMore(WordGame):
    """Truncates an episode after 11 turns, although it declares 10."""

    def step(self, action: str) -> _Step:
        """Play one action."""
        observation, reward, terminated, _, info = super().step(action)
        truncated = not terminated and self.turn > self.max_turns
        self.over = terminated or truncated
        return observation, reward, terminated, truncated, info


class Endless(KeyRooms):
    """Never truncates an episode, although it declares 12 turns."""

    def step(self, action: str) -> _Step:
        """Play one action."""
        observation, reward, terminated, _, info = super().step(action)
        self.over = terminated
        return observation, reward, terminated, False, info


class LateReward(CraftGame):
    """Pays for a part one turn after it was crafted."""

    _due = 0.0

    def clear_score(self) -> None:
        """Begin with nothing due."""
        super().clear_score()
        self._due = 0.0

    def pay(self) -> float:
        """Return the reward of the last turn; at the end, all of it."""
        due, self._due = self._due, super().pay()
        return due + self._due if self.won else due


class UnpaidLastTurn(WordGame):
    """A win in the last turn succeeds without a reward."""

    def play(self, action: str) -> tuple[str, float]:
        """Compare a guess."""
        observation, reward = super().play(action)
        return observation, reward if self.turn < self.max_turns else 0.0


class SuccessFlips(WordGame):
    """An episode continues for a turn after the win, whose info has no success."""

    _found = False

    def start(self, task: int) -> str:
        """Show the letters."""
        self._found = False
        return super().start(task)

    def play(self, action: str) -> tuple[str, float]:
        """Compare a guess, or confirm the end."""
        if self._found:
            self.won = False
            return "The game is over.", 0.0
        return super().play(action)

    def is_finished(self) -> bool:
        """Return whether the turn after the win is over."""
        finished, self._found = self._found, self._found or self.won
        return finished


class PaysAfterEnd(CraftGame):
    """A step after the end returns the last reward again."""

    _last: _Step | None = None

    def step(self, action: str) -> _Step:
        """Play one action, or repeat the last result."""
        if self.over and self._last is not None:
            return self._last
        self._last = super().step(action)
        return self._last


class NanScore(CraftGame):
    """Weights the reward by the task, and two of 500 tasks have the weight 0."""

    def pay(self) -> float:
        """Return the weighted reward, normalized."""
        weight = np.float64(((self.task or 0) + 113) % 250)
        with np.errstate(invalid="ignore"):
            return float(super().pay() * (weight / weight))


class IntegerEnd(PriceShop):
    """Returns 1 or 0 for ``terminated``."""

    def step(self, action: str) -> _Step:
        """Call one tool."""
        observation, reward, terminated, truncated, info = super().step(action)
        return observation, reward, int(terminated), truncated, info  # type: ignore[return-value]
