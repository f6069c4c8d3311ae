"""Event loops of this library: one in a thread, for the vector environment, and a temporary one."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

__all__ = ["EventLoopThread", "run_here"]

T = TypeVar("T")

_CANCEL_SECONDS = 2.0  # for cancelled work to end


class EventLoopThread:
    """An event loop in a separate thread, where other threads run coroutines."""

    def __init__(self) -> None:
        self._stopping = False
        self._loop = asyncio.new_event_loop()
        self._end: asyncio.Future[None] = self._loop.create_future()
        try:
            self._thread = threading.Thread(target=self._serve, name="agentgym-vector", daemon=True)
            self._thread.start()
        except BaseException:
            self._loop.close()
            raise

    @property
    def runs_here(self) -> bool:
        """Whether the thread runs coroutines: not after `stop`, and not in a forked child."""
        return self._thread.is_alive() and not self._stopping

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine and wait for it; Ctrl-C cancels it.

        Raises:
            RuntimeError: The loop was stopped, or belongs to another process.
        """
        if not self.runs_here:
            work.close()
            raise RuntimeError(
                "this vector environment was closed, or made in another process: make a new one"
            )
        if threading.current_thread() is self._thread:
            work.close()  # called by the garbage collector; each environment releases itself
            raise RuntimeError("a vector environment cannot be used in its own event loop")
        ended = threading.Event()

        async def signal_end() -> T:
            try:
                return await work
            finally:
                ended.set()

        done: Future[T] | None = None
        try:
            done = asyncio.run_coroutine_threadsafe(signal_end(), self._loop)
            return done.result()
        except BaseException:
            # Otherwise the program could exit and release environments while their state is unknown, and the
            # next coroutine would find the environments in use.
            if (done is None or done.cancel()) and not ended.wait(_CANCEL_SECONDS) and _is_new(work):
                work.close()  # it was cancelled before it started
            raise

    def stop(self, *, wait: bool = True) -> None:
        """Stop the thread. May be called again, for example after Ctrl-C.

        Args:
            wait: Whether to wait for its end.
        """
        self._stopping = True  # first: a coroutine that the loop gets after its end would never run
        if self._thread.is_alive():
            with contextlib.suppress(RuntimeError):  # it is already ending
                self._loop.call_soon_threadsafe(self._set_end)
            if wait:
                self._thread.join()

    def _set_end(self) -> None:
        if (
            not self._end.done()
        ):  # unlike `loop.stop`, a second call does not stop the loop while it cleans up
            self._end.set_result(None)

    def _serve(self) -> None:
        try:
            self._loop.run_until_complete(self._end)
        finally:
            self._loop.run_until_complete(self._loop.shutdown_asyncgens())  # this closes connections
            self._loop.close()


def _is_new(work: Coroutine[Any, Any, Any]) -> bool:
    return inspect.getcoroutinestate(work) == inspect.CORO_CREATED


def run_here(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine in a temporary event loop, even at exit.

    Args:
        work: The coroutine.
    """
    loop = asyncio.new_event_loop()
    try:
        loop.set_default_executor(_CallingThread())
        return loop.run_until_complete(work)
    finally:
        loop.close()


class _CallingThread(ThreadPoolExecutor):
    """Runs work such as a DNS look-up in the calling thread: at exit Python starts no more threads."""

    def submit(self, work: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        done: Future[Any] = Future()
        try:
            done.set_result(work(*args, **kwargs))
        except Exception as error:  # noqa: BLE001 - it is for the caller that awaits this
            done.set_exception(error)
        return done
