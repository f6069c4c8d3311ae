"""A few threads for short work with files, so that the event loop does none of it."""

from __future__ import annotations

import queue
import threading
from typing import TYPE_CHECKING

from agentgym_gym._lifecycle import after_fork_in_child

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["call_in_thread"]

_MOST = 4  # threads; each keeps some memory for good, and the work is short

_work: queue.SimpleQueue[Callable[[], object]] = queue.SimpleQueue()
_started: list[threading.Thread] = []


def call_in_thread(function: Callable[[], object]) -> None:
    """Have a function called in another thread, or here where no thread can be started.

    The threads are not those of an event loop's pool: the user's work may fill that, and the end of a program
    waits for them. These end with the program.

    Args:
        function: It raises nothing.
    """
    _work.put(function)
    if len(_started) >= _MOST:
        return
    name = f"agentgym-files-{len(_started)}"
    thread = threading.Thread(target=_serve, args=(_work,), name=name, daemon=True)
    try:
        thread.start()
    except RuntimeError:  # there are too many, or the program ends
        if not _started:
            _work.get()()
    else:
        _started.append(thread)


def _serve(work: queue.SimpleQueue[Callable[[], object]]) -> None:
    while True:
        work.get()()


def _forget_threads() -> None:
    """Start anew in a forked child, which has none of its parent's threads and owes none of their work."""
    global _work  # noqa: PLW0603 - the parent's may be locked
    _work = queue.SimpleQueue()
    _started.clear()


after_fork_in_child(_forget_threads)
