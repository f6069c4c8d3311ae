"""The episodes of a batch of verl 0.9's trainer, by its keys; needs neither PyTorch nor verl."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

__all__ = ["ROW_PER_TURN", "last_rows", "sessions_of"]

ROW_PER_TURN = "gym_row_per_turn"
"""The column with whether a row is one turn of an episode."""


def sessions_of(keys: Sequence[str]) -> list[list[int]]:
    """Return the rows of each episode, in the order of its turns.

    Args:
        keys: verl's key of each row: ``{uid}_{session}_{number of the output}``.
    """
    sessions: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for row, key in enumerate(keys):
        session, _, number = key.rpartition("_")
        sessions[session].append((int(number), row))
    return [[row for _, row in sorted(rows)] for rows in sessions.values()]


def last_rows(keys: Sequence[str]) -> list[int]:
    """Return the last row of each episode, in the order of the batch."""
    return sorted(rows[-1] for rows in sessions_of(keys))
