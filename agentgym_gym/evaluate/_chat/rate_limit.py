"""The rate and the concurrency of requests to a model server, which HTTP 429 reduces."""

from __future__ import annotations

import asyncio
import contextlib
import math
import time
from collections import Counter, deque
from collections.abc import Iterator
from typing import Any

from agentgym_gym.errors import BadOption

__all__ = ["Gate"]

_CUT = 0.7  # factor of the concurrency after HTTP 429
_TOO_MANY = 429


class Gate:
    """Admits requests to a model server, first come, first served.

    After HTTP 429, it admits 0.7 times as many concurrent requests as there were, and at least one. Each
    success then raises the limit by its reciprocal, so by about one per round trip, until it exceeds the
    highest concurrency so far. Requests that were sent before the last reduction do not cause another one.

    Args:
        per_minute: Maximum number of requests per minute, evenly spaced; None for no limit.

    Attributes:
        limit: Maximum number of concurrent requests; infinite until the first HTTP 429.
        lowest: The lowest limit so far.
        in_flight: Number of requests without a reply.
        requests: Number of requests so far.
        rejected: Number of requests that the server rejected with HTTP 429.
        retries: Number of requests that were sent again after a fault.
        faulted: Number of requests that wait before they are sent again.
        last_fault: The message of the last fault; empty without a fault.

    Raises:
        BadOption: ``per_minute`` is not positive.
    """

    def __init__(self, per_minute: float | None = None) -> None:
        if per_minute is not None and not 0 < per_minute < math.inf:
            raise BadOption("requests_per_minute", per_minute, "a positive number")
        self._pause = 0.0 if per_minute is None else 60.0 / per_minute
        self._next = -math.inf  # time of the next request, with `per_minute`
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._sleeping = 0
        self._highest = 0
        self._cut = -math.inf  # time of the last reduction
        self._open: Counter[float] = Counter()  # requests without a reply, by the time of their admission
        self.limit = self.lowest = math.inf
        self.in_flight = self.requests = self.rejected = self.retries = self.faulted = 0
        self.last_fault = ""

    def __getstate__(self) -> dict[str, Any]:
        """Return the state of a new gate with the same rate, because waiting requests cannot be pickled."""
        return vars(Gate(60.0 / self._pause if self._pause else None))

    @property
    def waiting(self) -> int:
        """Number of requests that wait for admission."""
        return len(self._waiting) + self._sleeping

    @property
    def longest_wait(self) -> float:
        """Seconds since the oldest request without a reply was sent; 0 if there is none."""
        return time.monotonic() - min(self._open) if self._open else 0.0

    async def enter(self) -> float:
        """Wait for admission, and return the time of admission for `leave`."""
        if self._waiting or self.in_flight >= self.limit:
            turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append(turn)
            try:
                await turn
            except asyncio.CancelledError:
                if turn.done() and not turn.cancelled():
                    self._release()  # admitted and cancelled in the same iteration of the loop
                else:
                    self._waiting.remove(turn)
                raise
        else:
            self.in_flight += 1
        try:
            await self._keep_rate()
        except asyncio.CancelledError:
            self._release()
            raise
        self.requests += 1
        self._highest = max(self._highest, self.in_flight)
        admitted = time.monotonic()
        self._open[admitted] += 1
        return admitted

    def leave(self, admitted: float, status: int | None) -> None:
        """Note that a request ended.

        Args:
            admitted: The time of its admission.
            status: The HTTP status of the reply; None if there was none.
        """
        self._open[admitted] -= 1
        if not self._open[admitted]:
            del self._open[admitted]
        if status == _TOO_MANY:
            self.rejected += 1
            if admitted > self._cut:
                self.limit = max(1.0, _CUT * min(self.limit, self.in_flight))
                self.lowest = min(self.lowest, self.limit)
                self._cut = time.monotonic()
        elif status is not None and self.limit < math.inf:
            self.limit += 1 / self.limit
            if self.limit > self._highest:
                self.limit = math.inf
        self._release()

    @contextlib.contextmanager
    def retrying(self, fault: str) -> Iterator[None]:
        """Count a request that waits before it is sent again.

        Args:
            fault: The message of its fault.
        """
        self.faulted += 1
        self.last_fault = fault
        try:
            yield
            self.retries += 1
        finally:
            self.faulted -= 1

    def _release(self) -> None:
        self.in_flight -= 1
        while self._waiting and self.in_flight + 1 <= self.limit:
            turn = self._waiting.popleft()
            if not turn.done():
                self.in_flight += 1
                turn.set_result(None)

    async def _keep_rate(self) -> None:
        if not self._pause:
            return
        now = time.monotonic()
        self._next = max(self._next + self._pause, now)
        if self._next > now:
            self._sleeping += 1
            try:
                await asyncio.sleep(self._next - now)
            finally:
                self._sleeping -= 1
