"""The numbers of connections: a connection that lives proves that its server was not restarted meanwhile.

Connections count up as this process opens them. An environment was last heard on one of them. While that one
lives, or one with a lower number, the server behind it is still the process that knows the environment.
"""

from __future__ import annotations

import itertools
import threading
import weakref
from typing import TYPE_CHECKING, Protocol

from agentgym_gym import _lifecycle

if TYPE_CHECKING:
    from agentgym_gym.calls import Call

__all__ = ["Numbered", "next_number", "number", "proves"]


class Numbered(Protocol):
    """A connection as this module sees it."""

    number: int

    @property
    def lives(self) -> bool:
        """Whether both its ends are open, as far as can be told from here and without waiting."""


_numbers = itertools.count(1)
_open: dict[str, weakref.WeakSet[Numbered]] = {}
# Reentrant, because the garbage collector may run while it is held, and close an environment.
_lock = threading.RLock()


def next_number() -> int:
    """Return the number of a connection that has just been opened, and not of one that is to be."""
    return next(_numbers)


def number(server: str, connection: Numbered) -> None:
    """Give a connection that has just been opened its number, and remember it.

    Args:
        server: Base URL of the server.
        connection: The connection.
    """
    connection.number = next_number()
    with _lock:
        _open.setdefault(server, weakref.WeakSet()).add(connection)


def proves(connection: Numbered, call: Call) -> bool:
    """Return whether a call may be sent on a connection that can be used."""
    if call.connection is None or connection.number <= call.connection:
        return True
    return call.witness and _has_witness(call.server, call.connection)


def _has_witness(server: str, highest: int) -> bool:
    """Return whether any connection to a server, of this number or a lower one, lives.

    A server has one process at a time. So while an old connection lives, a newer one leads to the same
    process, unless something that spreads connections stands in between.
    """
    with _lock:
        candidates = [each for each in _open.get(server, ()) if each.number <= highest]
    return any(each.lives for each in candidates)


def _forget() -> None:
    """Start a forked child without connections: what it inherits belongs to its parent."""
    global _lock  # noqa: PLW0603 - the parent may have held it while forking
    _lock = threading.RLock()
    _open.clear()


_lifecycle.after_fork_in_child(_forget)
