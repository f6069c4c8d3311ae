"""The gate of a rollout server: verl closes it to abort all requests, and opens it after a weight update."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import AsyncIterator

__all__ = ["AbortGate"]


class AbortGate:
    """Admits requests while it is open. For one event loop, with a generator in a thread.

    Attributes:
        aborting: Set while the gate is closed; the generator then stops after its current token.
    """

    def __init__(self) -> None:
        self.aborting = threading.Event()
        self._changed = asyncio.Condition()
        self._rejecting = False
        self._admitted = 0
        self._empty = asyncio.Event()
        self._empty.set()

    @contextlib.asynccontextmanager
    async def request(self) -> AsyncIterator[bool]:
        """Wait until the gate is open, for the time of one request.

        Yields:
            Whether the request was admitted. A closed gate that rejects requests lets none wait.
        """
        async with self._changed:
            await self._changed.wait_for(lambda: self._rejecting or not self.aborting.is_set())
            admitted = not self._rejecting
            if admitted:
                self._admitted += 1
                self._empty.clear()
        try:
            yield admitted
        finally:
            # Not under the lock: a cancelled request must be able to leave without waiting.
            self._admitted -= admitted
            if not self._admitted:
                self._empty.set()

    async def close(self, *, reject: bool) -> None:
        """Close the gate, and wait until all admitted requests have returned.

        Args:
            reject: Whether requests from now on are rejected; otherwise they wait for the gate to open.
        """
        self.aborting.set()
        async with self._changed:
            self._rejecting = reject
            self._changed.notify_all()
        await self._empty.wait()

    async def open(self) -> None:
        """Open the gate, and admit the requests that wait."""
        async with self._changed:
            self._rejecting = False
            self.aborting.clear()
            self._changed.notify_all()
