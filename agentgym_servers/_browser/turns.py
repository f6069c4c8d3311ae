"""Limits how many pages work at the same time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

__all__ = ["TURN_SECONDS", "Turns"]

TURN_SECONDS = 60.0
"""Time limit of one reset or action in seconds, from the moment when its turn has come."""

_AT_ONCE = 8  # more pages at a time only make each slower

T = TypeVar("T")


class Turns:
    """The turns of all environments of a server."""

    def __init__(self) -> None:
        self._free = asyncio.Semaphore(_AT_ONCE)

    async def take(self, work: Callable[[], Awaitable[T]], idle_seconds: float = 0.0) -> T:
        """Wait for a turn, and do the work.

        Args:
            work: The work.
            idle_seconds: The part of the work that only waits; the time limit does not count it.

        Raises:
            TimeoutError: The work took longer than a turn may. The wait for the turn has no limit: it depends
                on the other environments and not on this one.
        """
        async with self._free:
            return await asyncio.wait_for(work(), TURN_SECONDS + idle_seconds)
