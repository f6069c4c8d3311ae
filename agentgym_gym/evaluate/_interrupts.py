"""Handles Ctrl-C while a coroutine is awaited."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import threading
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

__all__ = ["INTERRUPTED", "Interrupt", "interruptible"]

T = TypeVar("T")

INTERRUPTED = 130
"""The exit status that shells report for a command interrupted by Ctrl-C."""


class Interrupt:
    """Ends `interruptible` from another thread, also if it is awaited only later."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._cancel: Callable[[], object] | None = None
        self._is_set = False

    def set(self) -> None:
        """Cancel the coroutine."""
        with self._lock:
            self._is_set = True
            cancel = self._cancel
        if cancel is not None:
            cancel()

    def to(self, cancel: Callable[[], object] | None) -> None:
        """Choose the function that cancels, at once if `set` was called; None for no function."""
        with self._lock:
            self._cancel = cancel
            at_once = self._is_set and cancel is not None
        if at_once and cancel is not None:
            cancel()


async def interruptible(work: Coroutine[Any, Any, T], by: Interrupt | None = None) -> T:
    """Await a coroutine and return its result; Ctrl-C cancels it instead of interrupting a callback.

    A second Ctrl-C ends the program as usual.

    Args:
        work: The coroutine.
        by: Cancels it from another thread.

    Raises:
        KeyboardInterrupt: Ctrl-C or another thread cancelled the coroutine.
    """
    loop, task = asyncio.get_running_loop(), asyncio.ensure_future(work)
    by = by or Interrupt()
    interrupted = False

    def interrupt() -> None:
        nonlocal interrupted
        interrupted = True
        task.cancel()
        with contextlib.suppress(NotImplementedError, RuntimeError, ValueError):
            loop.remove_signal_handler(signal.SIGINT)

    # Signal handlers are not supported on every system, and only in the main thread.
    with contextlib.suppress(NotImplementedError, RuntimeError, ValueError):
        loop.add_signal_handler(signal.SIGINT, interrupt)
    by.to(lambda: loop.call_soon_threadsafe(interrupt))
    try:
        return await task
    except asyncio.CancelledError:
        if interrupted:
            raise KeyboardInterrupt from None
        raise
    finally:
        by.to(None)
        with contextlib.suppress(NotImplementedError, RuntimeError, ValueError):
            loop.remove_signal_handler(signal.SIGINT)
