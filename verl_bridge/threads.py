"""Threads for calls that block, which never keep a program from ending."""

from __future__ import annotations

import threading
from collections import Counter
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
        limit: Threads that may run at once, beside those of abandoned calls; more calls than that wait for
            their turn.
        name: What the threads are called.
        abandoned_limit: Abandoned calls that are replaced by new threads; those beyond keep their places.
    """

    def __init__(self, limit: int, name: str, abandoned_limit: int = 0) -> None:
        self.limit = limit
        self.abandoned_limit = abandoned_limit
        self._name = name
        self._calls: SimpleQueue[tuple[Future[Any], Callable[[], Any]]] = SimpleQueue()
        self._idle = threading.Semaphore(0)
        self._lock = threading.Lock()
        self._started = 0
        self._running: dict[Future[Any], str] = {}
        self._abandoned: set[Future[Any]] = set()

    def submit(self, work: Callable[[], T], label: str = "") -> Future[T]:
        """Run something in a thread, soon.

        Args:
            work: What is run.
            label: What it belongs to, for :meth:`running`.

        Raises:
            RuntimeError: No thread can be started, and none is there.
        """
        future: Future[T] = Future()
        self._calls.put((future, lambda: self._run(future, work, label)))
        self._serve()
        return future

    def abandon(self, future: Future[Any]) -> None:
        """Give the place of a call that nobody awaits any more to another; its thread ends with it."""
        with self._lock:
            if future not in self._running or future in self._abandoned:
                return
            if len(self._abandoned) >= self.abandoned_limit:
                return
            self._abandoned.add(future)
            self._started -= 1
        if not self._calls.empty():
            self._serve()

    def running(self) -> Counter[str]:
        """Return how many calls of each label are being run, those that nobody awaits included."""
        with self._lock:
            return Counter(self._running.values())

    def _serve(self) -> None:
        if not self._idle.acquire(blocking=False):
            with self._lock:
                if self._started < self.limit:
                    self._start()

    def _start(self) -> None:
        self._started += 1
        try:
            threading.Thread(target=self._work, name=f"{self._name}-{self._started}", daemon=True).start()
        except RuntimeError:  # the system has no more, or the interpreter is ending: those there must do
            self._started -= 1
            if not self._started:
                raise

    def _run(self, future: Future[T], work: Callable[[], T], label: str) -> T:
        with self._lock:
            self._running[future] = label
        return work()

    def _work(self) -> None:
        abandoned = False
        while not abandoned:
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
            with self._lock:
                self._running.pop(future, None)
                abandoned = future in self._abandoned
                self._abandoned.discard(future)
            del future, work  # an idle thread holds nothing
