"""A thread that runs one call after another and never keeps a program from ending."""

from __future__ import annotations

import asyncio
import inspect
import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, TypeAlias

__all__ = ["CallThread", "Outcome", "as_exception"]

Outcome: TypeAlias = "tuple[Any, Exception | None]"
"""What a call returned, and what it raised."""


class CallThread:
    """A daemon thread for blocking calls.

    The thread starts with the first call and ends with `stop` or with the program. The executors of the
    standard library wait for their threads at exit, forever if a call never returns.

    Args:
        name: Name of the thread.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._calls: queue.SimpleQueue[Callable[[], None] | None] | None = None

    def submit(self, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Outcome]:
        """Run a function in the thread, after the calls submitted before it.

        Raises:
            RuntimeError: The thread cannot be started.
        """
        future: Future[Outcome] = Future()

        def run() -> None:
            if not future.set_running_or_notify_cancel():
                return
            try:
                outcome: Outcome = function(*args, **kwargs), None
            except BaseException as error:  # noqa: BLE001 - the caller gets it; sys.exit ends only this call
                outcome = None, as_exception(error)
            future.set_result(outcome)

        if self._calls is None:
            calls: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
            threading.Thread(target=_serve, args=(calls,), name=self._name, daemon=True).start()
            self._calls = calls
        self._calls.put(run)
        return future

    async def __call__(self, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        """Run a function in the thread and return its result; a coroutine function is awaited here.

        Raises:
            Exception: The error of the function.
        """
        if inspect.iscoroutinefunction(function):
            return await function(*args, **kwargs)
        value, error = await asyncio.wrap_future(self.submit(function, *args, **kwargs))
        if error is not None:
            raise error
        return await value if inspect.isawaitable(value) else value

    def stop(self) -> None:
        """End the thread after the calls submitted so far. A later call starts another thread."""
        if self._calls is not None:
            self._calls.put(None)
            self._calls = None


def _serve(calls: queue.SimpleQueue[Callable[[], None] | None]) -> None:
    while (run := calls.get()) is not None:
        run()
        del run  # an idle thread keeps no environment alive


def as_exception(error: BaseException) -> Exception:
    """Return an error as one that does not end a program or an event loop."""
    return error if isinstance(error, Exception) else RuntimeError(f"{type(error).__name__}: {error}")
