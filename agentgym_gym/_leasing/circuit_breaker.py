"""Whether a server is worth asking: one that does not answer is left alone for a while.

A connection that is refused costs nothing, and whoever answers next may be well. A server that takes
connections and lets them wait costs a time limit each time, for every episode: hours, in a long run.
"""

from __future__ import annotations

import logging
import threading
import time

from agentgym_gym._logging import log
from agentgym_gym._text import redact
from agentgym_gym.errors import Fault, ServerTimeout, ServerUnreachable

__all__ = ["MAX_FAILURES", "MAX_OPEN_SECONDS", "OPEN_SECONDS", "CircuitBreaker"]

MAX_FAILURES = 3
"""Time limits that a server may reach in a row before it is left alone."""

OPEN_SECONDS = 10.0
"""How long it is left alone at first, in seconds; twice as long each time it is found no better."""

MAX_OPEN_SECONDS = 120.0
"""How long at the most, in seconds."""


class CircuitBreaker:
    """What is known of one server, by all threads of this process.

    Args:
        server: Its base URL, for messages.
    """

    def __init__(self, server: str) -> None:
        self._server = server
        self._failures = 0
        self._seconds = OPEN_SECONDS
        self._until = 0.0
        self._deprioritized_until = 0.0  # until when
        self._lock = threading.Lock()

    @property
    def deprioritized(self) -> bool:
        """Whether it failed somebody a while ago, so that another is asked rather."""
        now = time.monotonic()
        return now < self._deprioritized_until or (self._failures > 0 and now < self._until)

    def check(self) -> None:
        """Raise while the server is left alone; after that let one caller at a time find out how it is.

        Raises:
            ServerUnreachable: It is left alone.
        """
        with self._lock:
            if self._failures < MAX_FAILURES:
                return
            left = self._until - time.monotonic()
            if left > 0:
                raise ServerUnreachable(
                    f"{redact(self._server)} reached its time limit {self._failures} times in a row and is "
                    f"left alone for {left:.0f} seconds more"
                )
            self._open()

    def note(self, fault: Fault | None) -> None:
        """Take note of how a call ended.

        Args:
            fault: How it failed; None if it was answered.
        """
        with self._lock:
            missed, seconds = self._failures, self._seconds
            if fault is None:
                self._failures, self._seconds = 0, OPEN_SECONDS
            elif isinstance(fault, ServerTimeout) or (
                isinstance(fault, ServerUnreachable) and not fault.refused
            ):
                self._failures += 1
                if self._failures < MAX_FAILURES:
                    self._until = time.monotonic() + self._seconds
                elif self._failures == MAX_FAILURES:
                    self._open()
            failures = self._failures
        # Outside of the lock, for who writes a log may take long.
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
        """Have others asked first for a while: an episode could not begin here.

        Else the server that fails at once, being the least loaded, would be asked first by everybody.
        """
        self._deprioritized_until = time.monotonic() + OPEN_SECONDS

    def _open(self) -> None:
        self._until = time.monotonic() + self._seconds
        self._seconds = min(2 * self._seconds, MAX_OPEN_SECONDS)
