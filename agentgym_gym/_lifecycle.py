"""What this package does when the program ends, and after a fork.

Each module registers its own function here. The orders say what runs first at exit: environments are released
while the record of them is still there, and local servers are stopped last.
"""

from __future__ import annotations

import atexit
import os
from typing import TYPE_CHECKING

from agentgym_gym._logging import logger

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["RELEASE_ENVIRONMENTS", "REMOVE_RECORDS", "STOP_SERVERS", "after_fork_in_child", "at_exit"]

RELEASE_ENVIRONMENTS = 10
"""Remote environments are released."""

REMOVE_RECORDS = 20
"""The records of remote environments are removed from disk."""

STOP_SERVERS = 30
"""Local servers are stopped."""

_functions: list[tuple[int, Callable[[], object]]] = []


def at_exit(function: Callable[[], object], *, order: int) -> None:
    """Call a function when the program ends. An exception in it is logged, and the others still run.

    Args:
        function: What is called.
        order: The lower, the sooner.
    """
    _functions.append((order, function))


@atexit.register
def _run_all() -> None:
    for _, function in sorted(_functions, key=lambda entry: entry[0]):
        try:
            function()
        except Exception:
            logger.debug("a function failed at exit", exc_info=True)


def after_fork_in_child(function: Callable[[], object]) -> None:
    """Call a function in each forked child, where the system has forks."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=function)
