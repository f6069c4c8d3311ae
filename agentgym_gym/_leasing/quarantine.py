"""Quarantine: ids that cannot be closed, and in which an abandoned request may still be running."""

from __future__ import annotations

import math
from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agentgym_gym._leasing.lease import Lease

__all__ = ["QUARANTINE_SECONDS", "Quarantine"]

QUARANTINE_SECONDS = 300.0
"""Seconds for which an id is in quarantine."""


class Quarantine:
    """The leases of one pool whose ids are in quarantine; the pool's lock protects it."""

    def __init__(self) -> None:
        self._entries: deque[tuple[float, Lease]] = deque()  # end times and leases, in order

    def __len__(self) -> int:
        return len(self._entries)

    def left(self, now: float) -> float:
        """Return the seconds until the next lease leaves; infinite if there is none."""
        return max(0.0, self._entries[0][0] - now) if self._entries else math.inf

    def add(self, lease: Lease, now: float) -> None:
        """Add an abandoned lease."""
        self._entries.append((now + QUARANTINE_SECONDS, lease))

    def take_ended(self, now: float) -> list[Lease]:
        """Remove and return the leases whose quarantine is over."""
        ended = []
        while self._entries and self._entries[0][0] <= now:
            ended.append(self._entries.popleft()[1])
        return ended

    def take(self, lease: Lease) -> bool:
        """Remove a lease; return whether it was there."""
        before = len(self._entries)
        self._entries = deque(entry for entry in self._entries if entry[1] is not lease)
        return len(self._entries) < before

    def drop(self, env_id: int) -> None:
        """Remove leases on an id that belongs to another environment now."""
        self._entries = deque(entry for entry in self._entries if entry[1].env_id != env_id)

    def take_all(self) -> list[Lease]:
        """Remove and return all leases."""
        taken = [lease for _, lease in self._entries]
        self._entries.clear()
        return taken
