"""What both connections need of sockets: the race of addresses, TLS, and what a failure to connect means."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import select
import selectors
import socket
import time
from functools import lru_cache
from itertools import chain, zip_longest
from typing import TYPE_CHECKING, Any

from agentgym_gym._text import reason
from agentgym_gym.errors import ServerUnreachable

if TYPE_CHECKING:
    import ssl
    from collections.abc import Iterable

    from agentgym_gym.calls import Call

__all__ = [
    "ATTEMPT_DELAY",
    "connect",
    "in_turns",
    "is_address",
    "is_hung_up",
    "is_readable",
    "nobody_listens",
    "the_error",
    "tls_context",
    "unreachable",
]

ATTEMPT_DELAY = 0.25
"""Seconds after which the next address of a name is tried beside the ones before (RFC 8305, section 5)."""

_IN_PROGRESS = frozenset({0, errno.EINPROGRESS, errno.EWOULDBLOCK})
_NO_DESCRIPTOR = frozenset({str(errno.EMFILE), str(errno.ENFILE)})
_CODE = re.compile(r"\[Errno (\d+)\]")


@lru_cache(maxsize=1)
def tls_context() -> ssl.SSLContext:
    """Return the one TLS context that all connections share.

    It trusts what the system trusts, so that a company's certificate authority is installed in one place.
    ``SSL_CERT_FILE`` and ``SSL_CERT_DIR`` name another store, as OpenSSL reads them. Where the system has no
    store, that of certifi is used.
    """
    import ssl  # noqa: PLC0415 - plain HTTP needs none of it

    context = ssl.create_default_context()
    paths = ssl.get_default_verify_paths()
    if not (paths.cafile or paths.capath):
        import certifi  # noqa: PLC0415 - few systems need it

        context.load_verify_locations(certifi.where())
    return context


def nobody_listens(error: OSError) -> bool:
    """Return whether a failure to connect says that no server listens there: each address refused.

    A name that cannot be looked up, a network that cannot be reached, a certificate that is not trusted or a
    lack of descriptors says nothing about the server.
    """
    return _codes(error) == {str(errno.ECONNREFUSED)}


def _codes(error: OSError) -> set[str]:
    # asyncio puts the failures of several addresses into the words of one error, without a number.
    return {str(error.errno)} if error.errno is not None else set(_CODE.findall(str(error)))


def unreachable(call: Call, error: OSError) -> ServerUnreachable:
    """Return the fault of a failure to connect, with its real reason.

    Args:
        call: What was to be sent.
        error: How it failed.
    """
    advice = ""
    if _codes(error) & _NO_DESCRIPTOR:
        advice = ". Close what is not needed, or allow this process more of them (ulimit -n)"
    return ServerUnreachable(
        f"{call} could not connect: {reason(error)}{advice}",
        refused=nobody_listens(error),
        server_slow=isinstance(error, TimeoutError),
    )


def is_address(host: str) -> bool:
    """Return whether a host is an address, and no name that must be looked up."""
    for family in (socket.AF_INET, socket.AF_INET6):
        with contextlib.suppress(OSError, UnicodeError):
            socket.inet_pton(family, host)
            return True
    return False


def is_readable(number: int) -> bool:
    """Return whether something can be read of a socket now, be it that its other end was closed.

    Args:
        number: The socket's file descriptor.
    """
    if not hasattr(select, "poll"):
        return bool(select.select([number], [], [], 0)[0])
    poll = select.poll()
    poll.register(number, select.POLLIN)
    return bool(poll.poll(0))


def is_hung_up(number: int) -> bool:
    """Return whether the other end of a socket was closed, whatever there is left to read.

    Where the system cannot tell, whatever can be read counts as the end.

    Args:
        number: The socket's file descriptor.
    """
    if not hasattr(select, "POLLRDHUP"):
        return is_readable(number)
    poll = select.poll()
    poll.register(number, select.POLLRDHUP)
    return bool(poll.poll(0))


def connect(host: str, port: int, deadline: float) -> socket.socket:
    """Connect to the first address of a name that answers.

    The addresses are tried `ATTEMPT_DELAY` seconds apart, those of IPv6 and IPv4 in turns, and none waits for
    another to fail (RFC 8305).

    Args:
        host: A name or an address.
        port: The port.
        deadline: By when, on `time.monotonic`. The system's look-up of the name has limits of its own.

    Returns:
        A connected socket in blocking mode.

    Raises:
        TimeoutError: No address answered by the deadline.
        OSError: The name has no address, or none can be reached; it is a `ConnectionRefusedError` only where
            each of them refused.
    """
    addresses = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    if time.monotonic() >= deadline:  # which says nothing about the server
        raise socket.gaierror(socket.EAI_AGAIN, f"to look up the name {host} took all the time allowed")
    race = _Race(in_turns(addresses), deadline)
    try:
        connected = race.run()
    finally:
        race.close()
    connected.setblocking(True)
    connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connected


class _Race:
    """Attempts to connect, the next begun when all before it have failed or `ATTEMPT_DELAY` is over."""

    def __init__(self, addresses: Iterable[tuple[Any, ...]], deadline: float) -> None:
        self._waiting = list(addresses)
        self._deadline = deadline
        self._errors: list[OSError] = []
        self._running = selectors.DefaultSelector()

    def run(self) -> socket.socket:
        """Return the first socket that is connected."""
        while self._waiting or self._running.get_map():
            if self._waiting:
                self._begin(*self._waiting.pop(0))
            for each in self._ended():
                code = each.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
                if code == 0:
                    return each
                self._failed(each, code)
            if time.monotonic() >= self._deadline:
                raise TimeoutError("no address answered in time")
        raise the_error(self._errors)

    def close(self) -> None:
        """Close the sockets that were too late."""
        for key in list((self._running.get_map() or {}).values()):
            key.fileobj.close()  # type: ignore[union-attr] # a socket
        self._running.close()

    def _begin(self, family: int, kind: int, protocol: int, _name: str, address: Any) -> None:
        try:
            attempt = socket.socket(family, kind, protocol)
        except OSError as error:  # such as a family that this machine does not have
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
        """Wait until an attempt has ended or the next may begin; return the sockets that have ended."""
        if not self._running.get_map():
            return []
        seconds = max(0.0, self._deadline - time.monotonic())
        if self._waiting:
            seconds = min(seconds, ATTEMPT_DELAY)
        ended: list[Any] = [key.fileobj for key, _ in self._running.select(seconds)]
        for each in ended:
            self._running.unregister(each)
        return ended


def the_error(errors: list[OSError]) -> OSError:
    """Return the error of a name of which no address answered.

    A refusal is told only where each address refused: else a server may be there.
    """
    return min(errors, key=lambda error: isinstance(error, ConnectionRefusedError))


def in_turns(addresses: list[tuple[Any, ...]]) -> Iterable[tuple[Any, ...]]:
    """Return addresses with the families in turns, the first family first."""
    first = [each for each in addresses if each[0] == addresses[0][0]]
    others = [each for each in addresses if each[0] != addresses[0][0]]
    return (each for each in chain.from_iterable(zip_longest(first, others)) if each is not None)
