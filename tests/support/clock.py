"""Time in tests, on a machine that may be busy."""

from __future__ import annotations

import contextlib
import signal
import time
from collections.abc import Callable, Iterator
from typing import Any


def cpu_seconds(function: Callable[[], Any], enough: float, *, calls: int = 4) -> float:
    """Call a function up to some times, until it takes no more than enough.

    Once may be bad luck: the garbage collector, or a busy machine. The best of some calls is
    what the code takes.

    Args:
        function: What is measured; it may be called again.
        enough: How long it may take, in seconds.
        calls: The largest number of calls.

    Returns:
        The seconds of this thread's processor time that the quickest call took.
    """
    best = float("inf")
    for _ in range(calls):
        began = time.thread_time()
        function()
        best = min(best, time.thread_time() - began)
        if best <= enough:
            break
    return best


@contextlib.contextmanager
def at_most(seconds: float) -> Iterator[None]:
    """Raise TimeoutError in a block that takes longer, in seconds of processor time: for the main thread."""

    def stop(*_: object) -> None:
        raise TimeoutError(f"it took more than {seconds:g} s of processor time")

    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


class Clock:
    """A clock that a test sets, in seconds."""

    now = 1_000.0

    def __call__(self) -> float:
        return self.now


def wait_until(true: Callable[[], Any], seconds: float = 20.0) -> None:
    """Wait for what another thread or process will bring about; fail when it did not within some seconds."""
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline, f"it did not come about in {seconds:g} s"
        time.sleep(0.01)
