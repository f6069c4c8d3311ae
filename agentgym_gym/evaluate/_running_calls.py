"""The calls of environments that have not returned yet, to report servers that hang."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["RunningCalls"]


class RunningCalls:
    """The running resets and steps of episodes."""

    def __init__(self) -> None:
        self._began: dict[object, float] = {}

    @contextmanager
    def noted(self, episode: object) -> Iterator[None]:
        """Note that a call of an episode is running."""
        self._began[episode] = time.monotonic()
        try:
            yield
        finally:
            del self._began[episode]

    @property
    def longest(self) -> float:
        """The seconds that the longest of them has run; 0 without any. May be read by any thread."""
        began = min(self._began.copy().values(), default=None)
        return 0.0 if began is None else time.monotonic() - began
