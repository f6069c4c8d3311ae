"""What Ctrl-C does to a command that awaits."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import Coroutine
from typing import Any, TypeVar

__all__ = ["INTERRUPTED", "interruptible"]

T = TypeVar("T")

INTERRUPTED = 130
"""The status that a shell gives to a command that Ctrl-C ended."""


async def interruptible(work: Coroutine[Any, Any, T]) -> T:
    """Await something for its result, and have Ctrl-C cancel it rather than break into a callback.

    A second Ctrl-C ends the program as usual.

    Raises:
        KeyboardInterrupt: It was cancelled so.
    """
    loop, task = asyncio.get_running_loop(), asyncio.ensure_future(work)
    interrupted = False

    def interrupt() -> None:
        nonlocal interrupted
        interrupted = True
        task.cancel()
        loop.remove_signal_handler(signal.SIGINT)

    # Not on every system, and in the main thread alone.
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
