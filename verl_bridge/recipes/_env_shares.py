"""Distribute rows among several environments by their weights.

verl draws each row of an epoch once, so the share of an environment among the tasks of a step is its share of
the rows.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeVar

__all__ = ["Share", "apportion", "interleave", "repeat_to"]

T = TypeVar("T")


@dataclass(frozen=True)
class Share:
    """The rows of one environment.

    Attributes:
        env_id: gymnasium's id, without the module.
        weight: Its weight.
        rows: Rows for training.
        tasks: Different tasks among them.
        available: Available tasks for training.
        val: Tasks for validation.
    """

    env_id: str
    weight: float
    rows: int
    tasks: int
    available: int
    val: int

    @property
    def note(self) -> str:
        """How the tasks were cut or repeated to get the number of rows; empty if each is one row."""
        if self.tasks < self.available:
            return f"{self.tasks:,} of {self.available:,} tasks"
        times, rest = divmod(self.rows, self.tasks)
        if times == 1 and not rest:
            return ""
        return f"each of {self.tasks:,} tasks {times}{f' or {times + 1}' if rest else ''} times"


def apportion(total: int, weights: Sequence[float]) -> list[int]:
    """Divide a number of rows by weights, by the largest remainders.

    Args:
        total: The number.
        weights: Positive weights.

    Returns:
        Numbers that sum to `total`, each less than one from its exact share. Equal remainders are resolved in
        favor of the earlier weight.
    """
    parts = [Fraction(weight) for weight in weights]
    exact = [total * part / sum(parts) for part in parts]
    counts = [math.floor(share) for share in exact]
    by_remainder = sorted(range(len(exact)), key=lambda at: (counts[at] - exact[at], at))
    for at in by_remainder[: total - sum(counts)]:
        counts[at] += 1
    return counts


def repeat_to(tasks: Sequence[T], count: int) -> list[T]:
    """Return the first `count` tasks, repeating from the start if there are fewer."""
    return [tasks[at % len(tasks)] for at in range(count)]


def interleave(parts: Sequence[Sequence[T]]) -> list[T]:
    """Interleave several parts so that every prefix contains them in proportion."""
    placed = [
        ((at + 0.5) / len(part), number, each)
        for number, part in enumerate(parts)
        for at, each in enumerate(part)
    ]
    return [each for *_, each in sorted(placed, key=lambda place: place[:2])]
