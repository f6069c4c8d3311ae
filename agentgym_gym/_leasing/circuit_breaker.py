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

__all__ = ["MAX_REST_SECONDS", "MISSES", "REST_SECONDS", "Health"]

MISSES = 3
"""Time limits that a server may reach in a row before it is left alone."""

REST_SECONDS = 10.0
"""How long it is left alone at first, in seconds; twice as long each time it is found no better."""

MAX_REST_SECONDS = 120.0
"""How long at the most, in seconds."""


class Health:
    """What is known of one server, by all threads of this process.

    Args:
        server: Its base URL, for messages.
    """

    def __init__(self, server: str) -> None:
        self._server = server
        self._misses = 0
        self._rest = REST_SECONDS
        self._until = 0.0
        self._shunned = 0.0  # until when
        self._lock = threading.Lock()

    @property
    def set_aside(self) -> bool:
        """Whether it failed somebody a while ago, so that another is asked rather."""
        now = time.monotonic()
        return now < self._shunned or (self._misses > 0 and now < self._until)

    def check(self) -> None:
        """Raise while the server is left alone; after that let one caller at a time find out how it is.

        Raises:
            ServerUnreachable: It is left alone.
        """
        with self._lock:
            if self._misses < MISSES:
                return
            left = self._until - time.monotonic()
            if left > 0:
                raise ServerUnreachable(
                    f"{redact(self._server)} reached its time limit {self._misses} times in a row and is "
                    f"left alone for {left:.0f} seconds more"
                )
            self._leave_alone()

    def note(self, fault: Fault | None) -> None:
        """Take note of how a call ended.

        Args:
            fault: How it failed; None if it was answered.
        """
        with self._lock:
            missed, rest = self._misses, self._rest
            if fault is None:
                self._misses, self._rest = 0, REST_SECONDS
            elif isinstance(fault, ServerTimeout) or (
                isinstance(fault, ServerUnreachable) and not fault.refused
            ):
                self._misses += 1
                if self._misses < MISSES:
                    self._until = time.monotonic() + self._rest
                elif self._misses == MISSES:
                    self._leave_alone()
            misses = self._misses
        # Outside of the lock, for who writes a log may take long.
        if missed < MISSES <= misses:
            log(
                logging.WARNING,
                "server left alone",
                server=redact(self._server),
                misses=misses,
                seconds=rest,
            )
        elif misses < MISSES <= missed:
            log(logging.INFO, "server answers again", server=redact(self._server), misses=missed)

    def shun(self) -> None:
        """Have others asked first for a while: an episode could not begin here.

        Else the server that fails at once, being the least loaded, would be asked first by everybody.
        """
        self._shunned = time.monotonic() + REST_SECONDS

    def _leave_alone(self) -> None:
        self._until = time.monotonic() + self._rest
        self._rest = min(2 * self._rest, MAX_REST_SECONDS)
