"""Limits how many pages work at the same time, and for how long."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from agentgym_servers._browser.chromium import Chromium

__all__ = ["TURN_SECONDS", "Turns"]

TURN_SECONDS = 60.0
"""Time limit of one reset or action in seconds, from the moment when its turn has come."""

_AT_ONCE = 8  # more pages at a time only make each slower

_PLACE_SECONDS = 0.5
"""How long a turn may keep others waiting. A page that takes longer waits itself, as for a slow site."""

T = TypeVar("T")


class Turns:
    """The turns of all environments of a server.

    Args:
        chromium: Their browser.
    """

    def __init__(self, chromium: Chromium) -> None:
        self._chromium = chromium
        self._free = asyncio.Semaphore(_AT_ONCE)

    async def take(self, work: Callable[[], Awaitable[T]], idle_seconds: float = 0.0) -> T:
        """Wait for a turn, and do the work.

        Args:
            work: The work.
            idle_seconds: The part of the work that only waits; the time limit does not count it.

        Raises:
            TimeoutError: The work took longer than a turn may. The wait for the turn has no limit: it depends
                on the other environments and not on this one.
            playwright.async_api.Error: The browser ended, or did not answer.
        """
        async with self._place():
            return await asyncio.wait_for(self._chromium.watch(work), TURN_SECONDS + idle_seconds)

    @contextlib.asynccontextmanager
    async def _place(self) -> AsyncIterator[None]:
        """Take one of the places, and give it back at the end of the block or after `_PLACE_SECONDS`."""
        await self._free.acquire()
        late = asyncio.get_running_loop().call_later(_PLACE_SECONDS, self._free.release)
        try:
            yield
        finally:
            if not late.cancelled() and late.when() > asyncio.get_running_loop().time():
                late.cancel()
                self._free.release()
