"""Draw random tasks, with the same result on every machine and every version of Python."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import TypeVar

from agentgym_gym.errors import BadOption

__all__ = ["draw"]

T = TypeVar("T")


def draw(values: Sequence[T], count: int, seed: int = 0) -> list[T]:
    """Return a random sample without replacement, in the order of the draws.

    Draw i, from 0, swaps the value at position i with the one at i + r, where r is the SHA-256 hash of the
    text ``SEED:i`` modulo the number of values from i on. A larger sample with the same seed therefore
    begins with the smaller one.

    Args:
        values: The values to draw from.
        count: Number of values to draw.
        seed: The random seed.

    Raises:
        BadOption: There are fewer values than ``count``.
    """
    if not 1 <= count <= len(values):
        raise BadOption("sample", count, f"a number from 1 to {len(values)}, the number of tasks")
    moved: dict[int, int] = {}  # the positions whose value was swapped; `values` may be a long range
    drawn = []
    for at in range(count):
        digest = hashlib.sha256(f"{seed}:{at}".encode()).digest()
        other = at + int.from_bytes(digest, "big") % (len(values) - at)
        drawn.append(values[moved.get(other, other)])
        moved[other] = moved.get(at, at)
    return drawn
