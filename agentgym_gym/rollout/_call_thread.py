"""A thread that runs calls in order and never prevents the program from exiting."""

from __future__ import annotations

import asyncio
import inspect
import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, TypeAlias

from agentgym_gym._lifecycle import after_fork_in_child

__all__ = ["CallOutcome", "CallThread", "as_exception", "cancelled_by_caller"]

CallOutcome: TypeAlias = "tuple[Any, Exception | None]"
"""The return value of a call, and its exception, or None."""

Calls: TypeAlias = "queue.SimpleQueue[Callable[[], None] | None]"

_IDLE_SECONDS = 2.0  # after this time, a thread without an owner ends


class CallThread:
    """A daemon thread for blocking calls.

    The thread starts with the first call and ends with `stop` or with the program. The executors of the
    standard library are not suitable: they wait for their threads at exit, indefinitely if a call hangs.

    Args:
        name: Name of the thread.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._calls: Calls | None = None

    def submit(self, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[CallOutcome]:
        """Run a function in the thread, after the calls submitted before it.

        Raises:
            RuntimeError: The thread cannot be started.
        """
        future: Future[CallOutcome] = Future()

        def run() -> None:
            if not future.set_running_or_notify_cancel():
                return
            try:
                outcome: CallOutcome = function(*args, **kwargs), None
            except BaseException as error:  # noqa: BLE001 - the caller gets it; sys.exit ends only this call
                outcome = None, as_exception(error)
            future.set_result(outcome)

        if self._calls is None:
            self._calls = _take_thread(self._name)
        self._calls.put(run)
        return future

    async def __call__(self, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        """Run a function in the thread and return its result; a coroutine function is awaited in the caller.

        Raises:
            Exception: The error of the function.
        """
        if inspect.iscoroutinefunction(function):
            return await function(*args, **kwargs)
        value, error = await asyncio.wrap_future(self.submit(function, *args, **kwargs))
        if error is not None:
            raise error
        return await value if inspect.isawaitable(value) else value

    def stop(self, *, reuse: bool = False) -> None:
        """Stop the thread after the calls submitted so far. A later call starts another thread.

        Args:
            reuse: Whether another `CallThread` may take over the thread; nothing may then depend on its
                identity.
        """
        calls, self._calls = self._calls, None  # first: after an interrupt, a thread must not have two owners
        if calls is not None:
            if reuse:
                _offer(calls)
            else:
                calls.put(None)


_lock = threading.Lock()
_offered: list[Calls] = []  # queues of threads without an owner


def _take_thread(name: str) -> Calls:
    with _lock:
        if _offered:
            return _offered.pop()
    calls: Calls = queue.SimpleQueue()
    threading.Thread(target=_serve, args=(calls,), name=name, daemon=True).start()
    return calls


def _offer(calls: Calls) -> None:
    with _lock:
        _offered.append(calls)
    calls.put(_do_nothing)  # wakes the thread, so that its idle timeout starts now


def _do_nothing() -> None:
    pass


def _serve(calls: Calls) -> None:
    while True:
        try:
            run = calls.get(timeout=_IDLE_SECONDS if calls in _offered else None)
        except queue.Empty:
            with _lock:
                if calls not in _offered:  # another owner has just taken it
                    continue
                _offered.remove(calls)
                return
        if run is None:
            return
        run()
        del run  # otherwise an idle thread keeps an environment alive


def _reset_after_fork() -> None:
    """Reset the state in a forked child: the threads belong to its parent."""
    global _lock  # noqa: PLW0603 - another thread of the parent may have held it
    _lock = threading.Lock()
    _offered.clear()


after_fork_in_child(_reset_after_fork)


def as_exception(error: BaseException) -> Exception:
    """Convert an exception to one that does not end a program or an event loop."""
    return error if isinstance(error, Exception) else RuntimeError(f"{type(error).__name__}: {error}")


def cancelled_by_caller() -> bool:
    """Return whether the cancelled task is the caller's, and not the environment's own call."""
    task = asyncio.current_task()
    cancelling = getattr(task, "cancelling", None)  # available since Python 3.11
    return cancelling is None or cancelling() > 0
