"""Connection numbers: a connection that is still open proves that the server was not restarted.

This process numbers its connections in the order in which it opens them. The last reply about an environment
came on one of them. While that one, or one with a lower number, is open, the server is still the process that
has the environment.
"""

from __future__ import annotations

import contextlib
import itertools
import math
import socket
import threading
import weakref
from typing import TYPE_CHECKING, Protocol, TypeVar

from agentgym_gym import _lifecycle
from agentgym_gym._http.sockets import is_hung_up

if TYPE_CHECKING:
    from collections.abc import Callable

    from agentgym_gym.calls import Call

__all__ = [
    "Numbered",
    "Witness",
    "any_lives",
    "copy_of",
    "keep",
    "next_number",
    "number",
    "proves",
    "retire",
]

_MOST_KEPT = 64  # descriptors


class Numbered(Protocol):
    """The interface of a connection that this module needs."""

    number: int

    @property
    def descriptor(self) -> int:
        """The file descriptor of its socket."""

    @property
    def lives(self) -> bool:
        """Whether both its ends are open, as far as this process can see without waiting."""


AnyNumbered = TypeVar("AnyNumbered", bound=Numbered)

_numbers = itertools.count(1)
# Keyed by identity. Unlike a `WeakSet` it can be read while the garbage collector triggers additions.
_open: dict[str, weakref.WeakValueDictionary[int, Numbered]] = {}
# Reentrant, because the garbage collector may run while the lock is held, and close an environment.
_lock = threading.RLock()


def next_number() -> int:
    """Return the next number; call it after a connection has been opened, not before."""
    return next(_numbers)


def number(server: str, connection: Numbered) -> None:
    """Number and register a connection that has just been opened.

    Args:
        server: Base URL of the server.
        connection: The connection.
    """
    connection.number = next_number()
    with _lock:
        _open.setdefault(server, weakref.WeakValueDictionary())[id(connection)] = connection


class Witness:
    """A copy of a connection's socket that is never used to send: it shows whether the other end is open.

    It outlives the connection, whose event loop may end or whose environment may be garbage-collected.

    Args:
        number: The number of the connection.
        descriptor: The descriptor of its socket; the witness copies it.

    Attributes:
        descriptor: The descriptor of the copy.

    Raises:
        OSError: The descriptor cannot be copied.
    """

    def __init__(self, number: int, descriptor: int) -> None:
        self.number = number
        self._process = _lifecycle.ProcessId()
        # No socket object: the garbage collector may finalize it first, with a warning.
        self.descriptor = socket.fromfd(descriptor, socket.AF_INET, socket.SOCK_STREAM).detach()

    def __del__(self, close: Callable[[int], None] = socket.close) -> None:
        with contextlib.suppress(AttributeError):  # the copy failed
            # Another thread can still get this object by a weak reference while `close` runs.
            descriptor, self.descriptor = self.descriptor, -1
            close(descriptor)

    @property
    def lives(self) -> bool:
        """Whether both ends of the connection are open."""
        number = self.descriptor
        return number >= 0 and self._process.current and not is_hung_up(number)


_kept: weakref.WeakSet[Witness] = weakref.WeakSet()


def copy_of(server: str, number: int, descriptor: int) -> Witness | None:
    """Return a new witness of a connection; None if it cannot be copied.

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
    """Return a witness for a reply on a connection; None if no old enough connection is open.

    It preserves the proof that the open connections give after they are closed.

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
    """Return whether a call may be sent on a usable connection."""
    if call.connection is None or connection.number <= call.connection:
        return True
    return call.witness and any_lives(call.server, call.connection)


def retire(retired: dict[str, AnyNumbered], server: str, connection: AnyNumbered) -> AnyNumbered | None:
    """Keep a connection that is used no more, if no older one proves that the server was not restarted.

    Args:
        retired: The connection of each server that is kept open as proof; the older, the better.
        server: Base URL of the server.
        connection: The connection.

    Returns:
        The connection to close: this one, or one that had been kept; None if there is none.
    """
    older = retired.get(server)
    if not connection.lives or (older is not None and older.lives):
        return connection
    retired[server] = connection
    return older


def any_lives(server: str, highest: float = math.inf) -> bool:
    """Return whether any connection to a server, with this number or a lower one, is open.

    A server has one process at a time. So while an old connection is open, a newer one leads to the same
    process, unless there is a load balancer in between.
    """
    return any(each.lives for each in _up_to(server, highest))


def _up_to(server: str, highest: float) -> list[Numbered]:
    """Return the connections to a server with this number or a lower one."""
    with _lock:
        known = _open[server].valuerefs() if server in _open else []
    connections = [each() for each in known]
    return [each for each in connections if each is not None and each.number <= highest]


def _forget() -> None:
    """Remove all connections in a forked child: they belong to its parent."""
    global _lock  # noqa: PLW0603 - the parent may have held it while forking
    _lock = threading.RLock()
    _open.clear()
    _kept.clear()


_lifecycle.after_fork_in_child(_forget)
