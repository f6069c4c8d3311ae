"""Quarantine: ids that cannot be closed, and in which a request that was given up may still be running."""

from __future__ import annotations

import math
from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agentgym_gym._leasing.lease import Lease

__all__ = ["QUARANTINE_SECONDS", "Quarantine"]

QUARANTINE_SECONDS = 300.0
"""How long an id is in quarantine."""


class Quarantine:
    """The leases of one pool whose ids are in quarantine; the pool holds its lock while it asks."""

    def __init__(self) -> None:
        self._entries: deque[tuple[float, Lease]] = deque()  # when each may leave, the first one first

    def __len__(self) -> int:
        return len(self._entries)

    def left(self, now: float) -> float:
        """Return the seconds until the next one may leave; infinite where there is none."""
        return max(0.0, self._entries[0][0] - now) if self._entries else math.inf

    def add(self, lease: Lease, now: float) -> None:
        """Add a lease that is given up now."""
        self._entries.append((now + QUARANTINE_SECONDS, lease))

    def take_ended(self, now: float) -> list[Lease]:
        """Take out those that were in it long enough."""
        ended = []
        while self._entries and self._entries[0][0] <= now:
            ended.append(self._entries.popleft()[1])
        return ended

    def take(self, lease: Lease) -> bool:
        """Take one out; return whether it was in it."""
        before = len(self._entries)
        self._entries = deque(entry for entry in self._entries if entry[1] is not lease)
        return len(self._entries) < before

    def drop(self, env_id: int) -> None:
        """Take out what has an id that is another environment's now."""
        self._entries = deque(entry for entry in self._entries if entry[1].env_id != env_id)

    def take_all(self) -> list[Lease]:
        """Take out all."""
        taken = [lease for _, lease in self._entries]
        self._entries.clear()
        return taken
