"""A circuit breaker: a server that repeatedly times out gets no requests for a while.

Only timeouts count. A refused connection costs nothing, and the next server process at that address may be
healthy. A lack of descriptors, a failed look-up or an untrusted certificate is no evidence about the server.
A server that accepts connections and never answers costs one timeout per episode, which adds up to hours in a
long run.
"""

from __future__ import annotations

import logging
import math
import threading
import time
from typing import TYPE_CHECKING

from agentgym_gym._logging import log
from agentgym_gym._text import redact
from agentgym_gym.errors import Fault, ServerUnreachable

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["MAX_FAILURES", "MAX_OPEN_SECONDS", "OPEN_SECONDS", "CircuitBreaker"]

MAX_FAILURES = 3
"""Number of consecutive timeouts that open the circuit."""

OPEN_SECONDS = 10.0
"""Seconds for which the circuit is open at first. The time doubles with each further failure."""

MAX_OPEN_SECONDS = 120.0
"""The longest time for which the circuit is open, in seconds."""


class CircuitBreaker:
    """The health of one server, as observed by all threads of this process.

    Args:
        server: Its base URL, for messages.

    Attributes:
        clock: Returns the time in seconds; `time.monotonic`, or the clock of a test.
    """

    def __init__(self, server: str, *, clock: Callable[[], float] = time.monotonic) -> None:
        self.clock = clock
        self._server = server
        self._failures = 0
        self._seconds = OPEN_SECONDS
        self._until = -math.inf
        self._deprioritized_until = -math.inf
        self._lock = threading.Lock()

    @property
    def deprioritized(self) -> bool:
        """Whether the server failed recently, so that others are preferred."""
        now = self.clock()
        return now < self._deprioritized_until or (self._failures > 0 and now < self._until)

    def check(self) -> None:
        """Raise while the circuit is open; after that, let one caller at a time through as a probe.

        Raises:
            ServerUnreachable: The circuit is open.
        """
        with self._lock:
            if self._failures < MAX_FAILURES:
                return
            left = self._until - self.clock()
            if left > 0:
                raise ServerUnreachable(
                    f"{redact(self._server)} reached its time limit {self._failures} times in a row: "
                    f"circuit open for {left:.0f} more seconds"
                )
            self._open()

    def note(self, fault: Fault | None) -> None:
        """Record the outcome of a call.

        Args:
            fault: The fault; None if the server answered.
        """
        with self._lock:
            missed, seconds = self._failures, self._seconds
            if fault is None:
                self._failures, self._seconds = 0, OPEN_SECONDS
            elif fault.server_slow:
                self._failures += 1
                if self._failures < MAX_FAILURES:
                    self._until = self.clock() + self._seconds
                elif self._failures == MAX_FAILURES:
                    self._open()
            failures = self._failures
        # Outside the lock, because a log handler may be slow.
        if missed < MAX_FAILURES <= failures:
            log(
                logging.WARNING,
                "circuit open",
                server=redact(self._server),
                failures=failures,
                seconds=seconds,
            )
        elif failures < MAX_FAILURES <= missed:
            log(logging.INFO, "circuit closed", server=redact(self._server), failures=missed)

    def deprioritize(self) -> None:
        """Prefer other servers for a while, because an episode could not start on this one.

        A server that fails at once is always the least loaded, and every caller would select it.
        """
        self._deprioritized_until = self.clock() + OPEN_SECONDS

    def _open(self) -> None:
        self._until = self.clock() + self._seconds
        self._seconds = min(2 * self._seconds, MAX_OPEN_SECONDS)
