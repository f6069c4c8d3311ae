"""What is done when the program ends, and in a forked child.

At exit the order matters: remote environments are released while their servers run, the records of what is
held are removed after that, and the local servers stop last. One function, registered with `atexit`, runs all
of it in this order, whatever the order of the imports.
"""

from __future__ import annotations

import atexit
import contextlib
import os
from bisect import insort
from collections.abc import Callable
from operator import itemgetter

__all__ = [
    "RELEASE_ENVIRONMENTS",
    "REMOVE_RECORDS",
    "STOP_SERVERS",
    "ProcessId",
    "after_fork_in_child",
    "at_exit",
    "run_at_exit",
]

RELEASE_ENVIRONMENTS = 10
"""Order of what releases remote environments."""

REMOVE_RECORDS = 20
"""Order of what removes the files that say what this process holds."""

STOP_SERVERS = 30
"""Order of what stops local servers."""

_functions: list[tuple[int, Callable[[], object]]] = []


def at_exit(function: Callable[[], object], *, order: int) -> None:
    """Have a function called when the program ends.

    Args:
        function: Called without arguments, in the main thread. A forked child calls it, too, if it ends by
            itself.
        order: Functions of a lower order are called first; of the same order, the one registered first.
    """
    insort(_functions, (order, function), key=itemgetter(0))


def after_fork_in_child(function: Callable[[], object]) -> None:
    """Have a function called in every forked child; nothing where the system cannot fork.

    Args:
        function: Called without arguments, in the order of registration.
    """
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=function)


class ProcessId:
    """Says whether this is still the process that made the object, or a forked child of it."""

    def __init__(self) -> None:
        self._pid = os.getpid()

    @property
    def current(self) -> bool:
        """Whether the object was made in this process."""
        return self._pid == os.getpid()


@atexit.register
def run_at_exit() -> None:
    """Call what `at_exit` was given, in order; an exception of one does not keep the others from running.

    Raises:
        BaseException: The last exception that was raised; the ones before are its context.
    """
    with contextlib.ExitStack() as stack:
        for _, function in reversed(_functions):  # the stack calls the last first
            stack.callback(function)
