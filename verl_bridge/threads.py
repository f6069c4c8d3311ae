"""Threads for calls that block, which never keep a program from ending."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

__all__ = ["Threads"]

T = TypeVar("T")


class Threads:
    """A pool of daemon threads, started as they are needed and kept.

    The executor of the standard library waits for its threads when the program ends, for good where a call
    never returns.

    Args:
        limit: Threads that may run at once; more calls than that wait for their turn.
        name: What the threads are called.
    """

    def __init__(self, limit: int, name: str) -> None:
        self.limit = limit
        self._name = name
        self._calls: SimpleQueue[tuple[Future[Any], Callable[[], Any]]] = SimpleQueue()
        self._idle = threading.Semaphore(0)
        self._lock = threading.Lock()
        self._started = 0

    def submit(self, work: Callable[[], T]) -> Future[T]:
        """Run something in a thread, soon.

        Raises:
            RuntimeError: No thread can be started, and none is there.
        """
        future: Future[T] = Future()
        self._calls.put((future, work))
        if not self._idle.acquire(blocking=False):
            with self._lock:
                if self._started < self.limit:
                    self._start()
        return future

    def _start(self) -> None:
        self._started += 1
        try:
            threading.Thread(target=self._work, name=f"{self._name}-{self._started}", daemon=True).start()
        except RuntimeError:  # the system has no more, or the interpreter is ending: those there must do
            self._started -= 1
            if not self._started:
                raise

    def _work(self) -> None:
        while True:
            try:
                future, work = self._calls.get_nowait()
            except Empty:
                self._idle.release()
                future, work = self._calls.get()
            if future.set_running_or_notify_cancel():
                try:
                    future.set_result(work())
                except BaseException as error:  # noqa: BLE001 - whoever waits is told, and the thread goes on
                    future.set_exception(error)
            del future, work  # an idle thread holds nothing
