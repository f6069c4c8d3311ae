"""Random draws that are the same on every machine and with every version of Python."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import TypeVar

__all__ = ["Draw"]

T = TypeVar("T")


class Draw:
    """Draws from a seed in text.

    Python guarantees that later versions return the same numbers for a seed only for `random()` of
    `random.Random`. All other draws are therefore computed from `random()` here.

    Args:
        seed: The values that distinguish this draw from others, such as ``("webshop", 0, "product", 17)``.
    """

    def __init__(self, *seed: object) -> None:
        self._random = random.Random("/".join(map(str, seed))).random  # noqa: S311 - nothing secret

    def below(self, stop: int) -> int:
        """Return an integer from 0 up to, not including, a stop, which is at most 2**32."""
        return int(self._random() * stop)

    def between(self, least: int, most: int) -> int:
        """Return an integer from least to most, both included."""
        return least + self.below(most - least + 1)

    def chance(self, share: float) -> bool:
        """Return True with a given probability."""
        return self._random() < share

    def one(self, of: Sequence[T]) -> T:
        """Return one item of a sequence that is not empty."""
        return of[self.below(len(of))]

    def some(self, of: Sequence[T], count: int) -> list[T]:
        """Return a number of items of a sequence, each at most once, in the order drawn.

        Raises:
            ValueError: The sequence has fewer items.
        """
        if count > len(of):
            raise ValueError(f"{count} cannot be drawn of {len(of)}")
        left = list(of)
        return [left.pop(self.below(len(left))) for _ in range(count)]

    def shuffled(self, of: Sequence[T]) -> list[T]:
        """Return all items of a sequence in random order."""
        return self.some(of, len(of))
