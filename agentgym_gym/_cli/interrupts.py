"""Handle Ctrl-C in asynchronous commands."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import Coroutine
from typing import Any, TypeVar

__all__ = ["INTERRUPTED", "interruptible"]

T = TypeVar("T")

INTERRUPTED = 130
"""The exit status that shells report for a command interrupted by Ctrl-C."""


async def interruptible(work: Coroutine[Any, Any, T]) -> T:
    """Await a coroutine and return its result; Ctrl-C cancels it instead of interrupting a callback.

    A second Ctrl-C ends the program as usual.

    Raises:
        KeyboardInterrupt: Ctrl-C cancelled the coroutine.
    """
    loop, task = asyncio.get_running_loop(), asyncio.ensure_future(work)
    interrupted = False

    def interrupt() -> None:
        nonlocal interrupted
        interrupted = True
        task.cancel()
        loop.remove_signal_handler(signal.SIGINT)

    # Signal handlers are not supported on every system, and only in the main thread.
    with contextlib.suppress(NotImplementedError, RuntimeError, ValueError):
        loop.add_signal_handler(signal.SIGINT, interrupt)
    try:
        return await task
    except asyncio.CancelledError:
        if interrupted:
            raise KeyboardInterrupt from None
        raise
    finally:
        with contextlib.suppress(NotImplementedError, RuntimeError, ValueError):
            loop.remove_signal_handler(signal.SIGINT)
