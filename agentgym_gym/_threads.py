"""Thread pools for short file operations, which would block the event loop, and for releases."""

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

_IDLE_SECONDS = 2.0  # a thread ends after that long without work


class _Workers:
    """Threads that start on demand, and end when they are idle.

    The pool of an event loop is not suitable: the user's work may fill it, and the program waits for its
    threads at exit. These are daemon threads.

    Args:
        name: The prefix of their names.
        most: The maximum number of threads.
    """

    def __init__(self, name: str, most: int) -> None:
        self._name = name
        self._most = most
        self._started: set[threading.Thread] = set()
        self.forget()

    def forget(self) -> None:
        """Reset in a forked child, which has neither the threads nor the pending work of its parent."""
        self._work: queue.SimpleQueue[Callable[[], object]] = queue.SimpleQueue()
        self._started.clear()
        self._open: set[object] = set()  # the calls that have not ended

    def call(self, function: Callable[[], object]) -> None:
        """Call a function in a thread, or here if no thread can be started.

        Args:
            function: The function; it must not raise.
        """
        self._open.add(function)
        self._work.put(function)
        if sum(thread.is_alive() for thread in list(self._started)) >= self._most:
            return
        thread = threading.Thread(target=self._serve, args=(self._work,), name=self._name, daemon=True)
        try:
            thread.start()
        except RuntimeError:  # too many threads, or the interpreter is shutting down
            if not self._started:
                self._do_all(self._work)
        else:
            self._started.add(thread)

    def drain(self, seconds: float) -> None:
        """Wait until all work is done.

        Args:
            seconds: The longest time to wait.
        """
        deadline = time.monotonic() + seconds
        while self._open and self._started and time.monotonic() < deadline:
            time.sleep(0.01)

    def _serve(self, work: queue.SimpleQueue[Callable[[], object]]) -> None:
        with contextlib.suppress(queue.Empty):
            while True:
                self._do(work.get(timeout=_IDLE_SECONDS))  # keeps no reference while waiting for the next
        self._started.discard(threading.current_thread())
        self._do_all(work)  # work from before that, for which no other thread was started

    def _do_all(self, work: queue.SimpleQueue[Callable[[], object]]) -> None:
        with contextlib.suppress(queue.Empty):
            while True:
                self._do(work.get_nowait())

    def _do(self, function: Callable[[], object]) -> None:
        try:
            function()
        finally:
            self._open.discard(function)


_files = _Workers("agentgym-files", 4)  # few, because each uses memory and the work is short
_releases = _Workers("agentgym-release", 16)  # more, because each may wait for a server


def call_in_thread(function: Callable[[], object]) -> None:
    """Call a function that reads or writes files in another thread, or here if no thread can be started.

    Args:
        function: The function; it must not raise.
    """
    _files.call(function)


def call_in_background(function: Callable[[], object]) -> None:
    """Call a function that releases a remote environment in another thread.

    Args:
        function: The function; its exceptions are ignored.
    """

    def quietly() -> None:
        with contextlib.suppress(Exception):
            function()

    _releases.call(quietly)


def drain_background(seconds: float) -> None:
    """Wait until all functions of `call_in_background` are done.

    Args:
        seconds: The longest time to wait.
    """
    _releases.drain(seconds)


after_fork_in_child(_files.forget)
after_fork_in_child(_releases.forget)
