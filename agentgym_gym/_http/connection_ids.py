"""The numbers of connections: a connection that lives proves that its server was not restarted meanwhile.

Connections count up as this process opens them. An environment was last heard on one of them. While that one
lives, or one with a lower number, the server behind it is still the process that knows the environment.
"""

from __future__ import annotations

import contextlib
import itertools
import math
import socket
import threading
import weakref
from typing import TYPE_CHECKING, Protocol

from agentgym_gym import _lifecycle
from agentgym_gym._http.sockets import is_hung_up

if TYPE_CHECKING:
    from collections.abc import Callable

    from agentgym_gym.calls import Call

__all__ = ["Numbered", "Witness", "any_lives", "copy_of", "keep", "next_number", "number", "proves"]

_MOST_KEPT = 64  # descriptors


class Numbered(Protocol):
    """A connection as this module sees it."""

    number: int

    @property
    def descriptor(self) -> int:
        """The file descriptor of its socket."""

    @property
    def lives(self) -> bool:
        """Whether both its ends are open, as far as can be told from here and without waiting."""


_numbers = itertools.count(1)
# By their identity. Unlike a `WeakSet` it can be read while the garbage collector has others added.
_open: dict[str, weakref.WeakValueDictionary[int, Numbered]] = {}
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
        _open.setdefault(server, weakref.WeakValueDictionary())[id(connection)] = connection


class Witness:
    """A copy of a connection's socket, on which nothing is said: it tells whether the other end is open.

    It outlives the connection, whose event loop may end or whose environment may be dropped.

    Args:
        number: The number of the connection.
        descriptor: The descriptor of its socket, which is copied.

    Attributes:
        descriptor: The descriptor of the copy.

    Raises:
        OSError: There can be no copy.
    """

    def __init__(self, number: int, descriptor: int) -> None:
        self.number = number
        self._process = _lifecycle.ProcessId()
        # No socket object, which the garbage collector may end before this one, and then warns of.
        self.descriptor = socket.fromfd(descriptor, socket.AF_INET, socket.SOCK_STREAM).detach()

    def __del__(self, close: Callable[[int], None] = socket.close) -> None:
        with contextlib.suppress(AttributeError):  # there was no copy
            close(self.descriptor)

    @property
    def lives(self) -> bool:
        """Whether both ends of the connection are open."""
        return self._process.current and not is_hung_up(self.descriptor)


_kept: weakref.WeakSet[Witness] = weakref.WeakSet()


def copy_of(server: str, number: int, descriptor: int) -> Witness | None:
    """Return a witness that is a copy of a connection; None where there can be none.

    Args:
        server: Base URL of the server.
        number: The number of the connection.
        descriptor: The descriptor of its socket.
    """
    if len(_kept) >= _MOST_KEPT:
        return None
    try:
        witness = Witness(number, descriptor)
    except OSError:
        return None
    with _lock:
        _kept.add(witness)
        _open.setdefault(server, weakref.WeakValueDictionary())[id(witness)] = witness
    return witness


def keep(server: str, highest: int) -> Witness | None:
    """Return a witness of what was heard on a connection, as long as there is one to be had.

    It proves what the connections that live now prove, also when they are closed.

    Args:
        server: Base URL of the server.
        highest: The number of the connection.
    """
    for connection in _up_to(server, highest):
        if isinstance(connection, Witness):
            if connection.lives:
                return connection
        elif connection.lives:
            return copy_of(server, connection.number, connection.descriptor)
    return None


def proves(connection: Numbered, call: Call) -> bool:
    """Return whether a call may be sent on a connection that can be used."""
    if call.connection is None or connection.number <= call.connection:
        return True
    return call.witness and any_lives(call.server, call.connection)


def any_lives(server: str, highest: float = math.inf) -> bool:
    """Return whether any connection to a server, of this number or a lower one, lives.

    A server has one process at a time. So while an old connection lives, a newer one leads to the same
    process, unless something that spreads connections stands in between.
    """
    return any(each.lives for each in _up_to(server, highest))


def _up_to(server: str, highest: float) -> list[Numbered]:
    """Return the connections to a server that were not opened after one."""
    with _lock:
        known = _open[server].valuerefs() if server in _open else []
    connections = [each() for each in known]
    return [each for each in connections if each is not None and each.number <= highest]


def _forget() -> None:
    """Start a forked child without connections: what it inherits belongs to its parent."""
    global _lock  # noqa: PLW0603 - the parent may have held it while forking
    _lock = threading.RLock()
    _open.clear()
    _kept.clear()


_lifecycle.after_fork_in_child(_forget)
