"""Callbacks at exit and in forked children.

At exit the order matters: remote environments are released while their servers run, the records of leases are
removed after that, and the local servers stop last. One function, registered with `atexit`, runs all
callbacks in this order, regardless of the order of imports.
"""

from __future__ import annotations

import atexit
import contextlib
import os
from bisect import insort
from collections.abc import Callable
from operator import itemgetter

__all__ = [
    "END_CALLS",
    "RELEASE_ENVIRONMENTS",
    "REMOVE_RECORDS",
    "STOP_SERVERS",
    "ProcessId",
    "after_fork_in_child",
    "at_exit",
    "run_at_exit",
]

END_CALLS = 5
"""Order of callbacks that end interrupted calls, whose environments are released after that."""

RELEASE_ENVIRONMENTS = 10
"""Order of callbacks that release remote environments."""

REMOVE_RECORDS = 20
"""Order of callbacks that remove the records of this process's leases."""

STOP_SERVERS = 30
"""Order of callbacks that stop local servers."""

_functions: list[tuple[int, Callable[[], object]]] = []


def at_exit(function: Callable[[], object], *, order: int) -> None:
    """Register a function to call at exit.

    Args:
        function: Called without arguments, in the main thread. A forked child also calls it when it exits
            normally.
        order: Functions with a lower order are called first; with the same order, in order of registration.
    """
    insort(_functions, (order, function), key=itemgetter(0))


def after_fork_in_child(function: Callable[[], object]) -> None:
    """Register a function to call in every forked child; does nothing on systems without fork.

    Args:
        function: Called without arguments, in order of registration.
    """
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=function)


class ProcessId:
    """Distinguishes the process that created the object from its forked children."""

    def __init__(self) -> None:
        self._pid = os.getpid()

    @property
    def current(self) -> bool:
        """Whether the object was created in this process."""
        return self._pid == os.getpid()


@atexit.register
def run_at_exit() -> None:
    """Call the functions of `at_exit` in order; an exception does not prevent the other calls.

    Raises:
        BaseException: The last exception; the earlier ones are its context.
    """
    with contextlib.ExitStack() as stack:
        for _, function in reversed(_functions):  # the stack calls the last first
            stack.callback(function)
