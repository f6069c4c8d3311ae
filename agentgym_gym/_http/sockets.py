"""Shared by both kinds of connection: connection attempts, replacement, TLS and connection errors."""

from __future__ import annotations

import contextlib
import errno
import os
import select
import selectors
import socket
import time
import weakref
from itertools import chain, count, zip_longest
from typing import TYPE_CHECKING, Any

from agentgym_gym._lifecycle import ProcessId
from agentgym_gym._text import reason
from agentgym_gym.errors import ServerUnreachable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from typing_extensions import Self

    from agentgym_gym.calls import Call

__all__ = [
    "ATTEMPT_DELAY",
    "Link",
    "Replacement",
    "combine_errors",
    "connect",
    "interleave",
    "is_address",
    "is_end_without_shutdown",
    "is_readable",
    "receiver",
    "unreachable",
]

ATTEMPT_DELAY = 0.25
"""Seconds between attempts to connect to the addresses of a name (RFC 8305, section 5)."""

_IN_PROGRESS = frozenset({0, errno.EINPROGRESS, errno.EWOULDBLOCK})
_NO_DESCRIPTOR = frozenset({errno.EMFILE, errno.ENFILE})
_opened = count()


class Link:
    """Shows whether a connection is open, in any thread, and outlives the connection and its event loop.

    Args:
        fileno: Returns the descriptor of its socket, or -1 once this end is closed. If the socket is unknown,
            the connection counts as closed.

    Attributes:
        fileno: The same function.
        opened: The position of the connection in the order in which this process opened them.
    """

    def __init__(self, fileno: Callable[[], int] = lambda: -1) -> None:
        self.fileno = fileno
        self.opened = next(_opened)
        self._process = ProcessId()

    @property
    def lives(self) -> bool:
        """Whether both ends of the connection are open, even if unread data is left."""
        if not self._process.current:
            return False
        number = self.fileno()
        try:
            ended = number < 0 or _is_hung_up(number)
        except (OSError, ValueError):
            return False
        # If another thread has closed it meanwhile, the descriptor may belong to another socket now.
        return not ended and self.fileno() == number

    def keep(self) -> None:
        """Keep the connection open, though its owner closes it, for as long as this object exists."""
        with contextlib.suppress(OSError):
            # No socket object: the garbage collector may finalize it first, with a warning.
            copy = socket.fromfd(self.fileno(), socket.AF_INET, socket.SOCK_STREAM).detach()
            self.fileno = lambda: copy
            weakref.finalize(self, socket.close, copy).atexit = False


class Replacement:
    """Base of a connection that may replace an earlier one.

    Attributes:
        before: The connection that this one has replaced. It stays open until the first reply here, because
            the last reply about an environment came on it.
    """

    before: Self | None = None

    def disconnect(self) -> None:
        """Close only this connection; it may be closed already."""
        raise NotImplementedError

    def skip_unanswered(self) -> None:
        """Close the replaced connection if no reply came there, and keep the one before it in its place."""
        skipped = self.before
        if skipped is not None and skipped.before is not None:
            skipped.disconnect()  # first, so that Ctrl-C loses no open connection
            self.before = skipped.before

    def close_before(self) -> None:
        """Close the connection that this one has replaced."""
        if self.before is not None:
            self.before.close_before()
            self.before.disconnect()
            self.before = None


def unreachable(call: Call, error: OSError) -> ServerUnreachable:
    """Return the fault for a connection error, with the reason.

    Only a refusal proves that no server listens. A failed look-up, an unreachable network, an untrusted
    certificate or a lack of descriptors proves nothing about the server.

    Args:
        call: The call that was not sent.
        error: The connection error.
    """
    advice = ""
    if error.errno in _NO_DESCRIPTOR:
        advice = ". Close what is not needed, or allow this process more of them (ulimit -n)"
    return ServerUnreachable(
        f"{call} could not connect: {reason(error)}{advice}",
        refused=error.errno == errno.ECONNREFUSED,
        server_slow=isinstance(error, TimeoutError),
    )


def is_address(host: str) -> bool:
    """Return whether a host is an IP address, and needs no look-up."""
    for family in (socket.AF_INET, socket.AF_INET6):
        with contextlib.suppress(OSError, UnicodeError):
            socket.inet_pton(family, host)
            return True
    return False


def receiver(connected: socket.socket) -> Callable[[int], bytes]:
    """Return the function that reads from a connected socket, or from the TLS on it, and is no Python code.

    Python runs signal handlers in Python code. `ssl.SSLSocket.recv` is such code: a Ctrl-C in it loses the
    data that it has read.

    Args:
        connected: The socket.
    """
    tls = getattr(connected, "_sslobj", None)
    read: Callable[[int], bytes] = connected.recv if tls is None else tls.read
    return read


def is_end_without_shutdown(error: OSError) -> bool:
    """Return whether the other end closed a TLS connection without the TLS shutdown, as many servers do."""
    import ssl  # noqa: PLC0415 - plain HTTP needs none of it

    return isinstance(error, ssl.SSLEOFError)


def is_readable(number: int) -> bool:
    """Return whether a socket has data or is at the end of the stream.

    Args:
        number: The socket's file descriptor.
    """
    if not hasattr(select, "poll"):
        return bool(select.select([number], [], [], 0)[0])
    poll = select.poll()
    poll.register(number, select.POLLIN)
    return bool(poll.poll(0))


def _is_hung_up(number: int) -> bool:
    """Return whether the other end was closed; on systems without this check, unread data counts as that."""
    if not hasattr(select, "POLLRDHUP"):
        return is_readable(number)
    poll = select.poll()
    poll.register(number, select.POLLRDHUP)
    return bool(poll.poll(0))


def connect(host: str, port: int, deadline: float) -> socket.socket:
    """Connect to the first address of a name that answers.

    Attempts start `ATTEMPT_DELAY` seconds apart, alternate between IPv6 and IPv4, and run in parallel
    (RFC 8305).

    Args:
        host: A name or an address.
        port: The port.
        deadline: The latest time, on `time.monotonic`. The system's look-up of the name has its own timeout.

    Returns:
        A connected socket in blocking mode.

    Raises:
        TimeoutError: No address answered by the deadline.
        OSError: The name has no address, or none is reachable; it is a `ConnectionRefusedError` only if every
            address refused.
    """
    addresses = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    if time.monotonic() >= deadline:  # no evidence about the server
        raise socket.gaierror(socket.EAI_AGAIN, f"to look up the name {host} took all the time allowed")
    race = _Race(interleave(addresses), deadline)
    try:
        connected = race.run()
    finally:
        race.close()
    try:
        connected.setblocking(True)
        connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    except BaseException:
        connected.close()
        raise
    return connected


class _Race:
    """Connection attempts; the next starts after `ATTEMPT_DELAY`, or when all earlier ones have failed."""

    def __init__(self, addresses: Iterable[tuple[Any, ...]], deadline: float) -> None:
        self._waiting = list(addresses)
        self._deadline = deadline
        self._errors: list[OSError] = []
        self._running = selectors.DefaultSelector()

    def run(self) -> socket.socket:
        """Return the first connected socket."""
        while self._waiting or self._running.get_map():
            if self._waiting:
                self._begin(*self._waiting.pop(0))
            for each in self._ended():
                self._running.unregister(each)  # one by one: `close` closes those that come too late
                code = each.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
                if code == 0:
                    return each
                self._failed(each, code)
            if time.monotonic() >= self._deadline:
                raise TimeoutError("no address answered in time")
        raise combine_errors(self._errors)

    def close(self) -> None:
        """Close the sockets of the other attempts."""
        for key in list((self._running.get_map() or {}).values()):
            key.fileobj.close()  # type: ignore[union-attr] # a socket
        self._running.close()

    def _begin(self, family: int, kind: int, protocol: int, _name: str, address: Any) -> None:
        try:
            attempt = socket.socket(family, kind, protocol)
        except OSError as error:  # such as an address family that this machine does not support
            self._errors.append(error)
            return
        self._running.register(attempt, selectors.EVENT_WRITE)
        attempt.setblocking(False)
        code = attempt.connect_ex(address)
        if code not in _IN_PROGRESS:
            self._running.unregister(attempt)
            self._failed(attempt, code)

    def _failed(self, attempt: socket.socket, code: int) -> None:
        attempt.close()
        self._errors.append(OSError(code, os.strerror(code)))

    def _ended(self) -> list[socket.socket]:
        """Wait until an attempt ends or the next is due, and return the sockets of ended attempts."""
        if not self._running.get_map():
            return []
        seconds = max(0.0, self._deadline - time.monotonic())
        if self._waiting:
            seconds = min(seconds, ATTEMPT_DELAY)
        return [key.fileobj for key, _ in self._running.select(seconds)]  # type: ignore[misc] # sockets


def combine_errors(errors: list[OSError]) -> OSError:
    """Return the error to report if no address of a name can be reached.

    It is a refusal only if every address refused: otherwise a server may exist.
    """
    return min(errors, key=lambda error: isinstance(error, ConnectionRefusedError))


def interleave(addresses: list[tuple[Any, ...]]) -> Iterable[tuple[Any, ...]]:
    """Interleave addresses by family, starting with the family of the first."""
    first = [each for each in addresses if each[0] == addresses[0][0]]
    others = [each for each in addresses if each[0] != addresses[0][0]]
    return (each for each in chain.from_iterable(zip_longest(first, others)) if each is not None)
