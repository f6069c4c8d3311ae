"""Event loops of this library: one in a thread, for the vector environment, and a temporary one."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import weakref
from collections.abc import Callable, Coroutine
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Generic, TypeVar

from agentgym_gym._lifecycle import END_CALLS, at_exit

__all__ = ["EventLoopThread", "run_here"]

T = TypeVar("T")

_CANCEL_SECONDS = 2.0  # for cancelled work to end


class EventLoopThread:
    """An event loop in a separate thread, where other threads run coroutines."""

    def __init__(self) -> None:
        self._stopping = False
        self._loop = asyncio.new_event_loop()
        self._end: asyncio.Future[None] = self._loop.create_future()
        self._job: _Job[Any] | None = None
        try:
            self._thread = threading.Thread(target=self._serve, name="agentgym-vector", daemon=True)
            self._thread.start()
            _threads.add(self)
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
        self.end_abandoned()
        job = _Job(work)
        self._job = job  # before it is started: from here on an interrupt loses nothing
        try:
            self._loop.call_soon_threadsafe(job.start)
            return job.done.result()
        except BaseException:
            self.end_abandoned()
            raise

    def end_abandoned(self) -> None:
        """Cancel a coroutine that its caller has left, as by Ctrl-C, and wait for its end for some seconds.

        Otherwise the program could exit and release environments while their state is unknown, and the next
        coroutine would find the environments in use. A second Ctrl-C interrupts this wait, too.
        """
        job = self._job
        if job is None or job.ended.is_set() or not self._thread.is_alive():
            return
        if job.caller is threading.current_thread() or not job.caller.is_alive():
            with contextlib.suppress(RuntimeError):  # the loop is closed, and runs nothing
                self._loop.call_soon_threadsafe(job.cancel)
                job.ended.wait(_CANCEL_SECONDS)

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


class _Job(Generic[T]):
    """A coroutine that another thread waits for.

    Args:
        work: The coroutine.

    Attributes:
        caller: The thread that waits for it.
        done: Its result.
        ended: Set when the coroutine has ended, or will not be started.
    """

    def __init__(self, work: Coroutine[Any, Any, T]) -> None:
        self.caller = threading.current_thread()
        self.done: Future[T] = Future()
        self.ended = threading.Event()
        self._work = work
        self._task: asyncio.Task[T] | None = None

    def start(self) -> None:
        """Start the coroutine in the running event loop, unless it was cancelled."""
        if not self.ended.is_set():
            self._task = asyncio.get_running_loop().create_task(self._work)
            self._task.add_done_callback(self._finish)

    def cancel(self) -> None:
        """Cancel the coroutine, in its event loop."""
        if self._task is None:
            self._work.close()
            self.ended.set()
        else:
            self._task.cancel()

    def _finish(self, task: asyncio.Task[T]) -> None:
        error = asyncio.CancelledError() if task.cancelled() else task.exception()
        if error is None:
            self.done.set_result(task.result())
        else:
            self.done.set_exception(error)
        self.ended.set()


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


_threads: weakref.WeakSet[EventLoopThread] = weakref.WeakSet()


def _end_all_abandoned() -> None:
    for thread in list(_threads):
        thread.end_abandoned()


at_exit(_end_all_abandoned, order=END_CALLS)
