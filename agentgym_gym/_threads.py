"""A few threads for short work with files, so that the event loop does none of it, and a few for releases."""

from __future__ import annotations

import contextlib
import queue
import threading
import time
from typing import TYPE_CHECKING

from agentgym_gym._lifecycle import after_fork_in_child

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["call_in_background", "call_in_thread", "drain_background"]

_IDLE_SECONDS = 2.0  # a thread without work ends after that long


class _Workers:
    """Threads that are started when there is work, and end when there is none.

    They are not those of an event loop's pool: the user's work may fill that, and the end of a program waits
    for them. These end with the program.

    Args:
        name: What their names begin with.
        most: How many there are at most.
    """

    def __init__(self, name: str, most: int) -> None:
        self._name = name
        self._most = most
        self._started: set[threading.Thread] = set()
        self.forget()

    def forget(self) -> None:
        """Start anew in a forked child, which has no thread of its parent's and owes none of their work."""
        self._work: queue.SimpleQueue[Callable[[], object]] = queue.SimpleQueue()
        self._started.clear()
        self._open: set[object] = set()  # a mark for each call that has not ended

    def call(self, function: Callable[[], object]) -> None:
        """Have a function called in a thread, or here where no thread can be started.

        Args:
            function: It raises nothing.
        """
        self._open.add(function)
        self._work.put(function)
        if sum(thread.is_alive() for thread in list(self._started)) >= self._most:
            return
        thread = threading.Thread(target=self._serve, args=(self._work,), name=self._name, daemon=True)
        try:
            thread.start()
        except RuntimeError:  # there are too many, or the program ends
            if not self._started:
                self._do_all(self._work)
        else:
            self._started.add(thread)

    def drain(self, seconds: float) -> None:
        """Wait until all work is done.

        Args:
            seconds: How long at most.
        """
        deadline = time.monotonic() + seconds
        while self._open and self._started and time.monotonic() < deadline:
            time.sleep(0.01)

    def _serve(self, work: queue.SimpleQueue[Callable[[], object]]) -> None:
        with contextlib.suppress(queue.Empty):
            while True:
                self._do(work.get(timeout=_IDLE_SECONDS))  # kept by no name while the next is waited for
        self._started.discard(threading.current_thread())
        self._do_all(work)  # what came before that, when no other thread was started for it

    def _do_all(self, work: queue.SimpleQueue[Callable[[], object]]) -> None:
        with contextlib.suppress(queue.Empty):
            while True:
                self._do(work.get_nowait())

    def _do(self, function: Callable[[], object]) -> None:
        try:
            function()
        finally:
            self._open.discard(function)


_files = _Workers("agentgym-files", 4)  # few, as each keeps some memory and the work is short
_releases = _Workers("agentgym-release", 16)  # each may have to wait for a server


def call_in_thread(function: Callable[[], object]) -> None:
    """Have a function called that reads or writes files, in another thread, or here if there can be none.

    Args:
        function: It raises nothing.
    """
    _files.call(function)


def call_in_background(function: Callable[[], object]) -> None:
    """Have a function called that releases a remote environment, in another thread.

    Args:
        function: What it raises is of no interest to anybody.
    """

    def quietly() -> None:
        with contextlib.suppress(Exception):
            function()

    _releases.call(quietly)


def drain_background(seconds: float) -> None:
    """Wait until what was given to `call_in_background` is done.

    Args:
        seconds: How long at most.
    """
    _releases.drain(seconds)


after_fork_in_child(_files.forget)
after_fork_in_child(_releases.forget)
