"""A circuit breaker: a server that does not answer is not asked for a while.

A refused connection costs nothing, and the server that answers next may be healthy. Where this machine has no
descriptor left, cannot look up a name or does not trust a certificate, nothing is known of the server. One
that accepts connections and never answers costs one time limit for every episode, which adds up to hours in
a long run.
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
"""The circuit opens after this many time limits in a row."""

OPEN_SECONDS = 10.0
"""How long the circuit is open at first, in seconds. It doubles each time the server fails again."""

MAX_OPEN_SECONDS = 120.0
"""How long the circuit is open at most, in seconds."""


class CircuitBreaker:
    """The health of one server, as all threads of this process found it.

    Args:
        server: Its base URL, for messages.

    Attributes:
        clock: Returns the time in seconds; `time.monotonic`, or that of a test.
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
        """Whether the server failed a short while ago, so that others are asked first."""
        now = self.clock()
        return now < self._deprioritized_until or (self._failures > 0 and now < self._until)

    def check(self) -> None:
        """Raise while the circuit is open. After that one caller at a time is let through, to try the server.

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
        """Note how a call ended.

        Args:
            fault: How it failed; None if the server answered.
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
        # Outside of the lock, because a log handler may take long.
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
        """Have other servers asked first for a while, because an episode could not begin on this one.

        A server that fails at once is the least loaded one, and would be everybody's first choice.
        """
        self._deprioritized_until = self.clock() + OPEN_SECONDS

    def _open(self) -> None:
        self._until = self.clock() + self._seconds
        self._seconds = min(2 * self._seconds, MAX_OPEN_SECONDS)
