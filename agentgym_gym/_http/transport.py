"""httpx's transport, on one connection that keeps to a deadline.

A time limit of httpx is one for each wait: a server that sends a byte now and then, be it of the headers,
never reaches it. Here each request carries the moment by which all of its reply must be there.
"""

from __future__ import annotations

import base64
import contextlib
import ssl
import time
from functools import lru_cache
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

import httpcore
import httpx

if TYPE_CHECKING:
    from collections.abc import Iterable

    from agentgym_gym._http.limits import Stats

__all__ = ["KEEPALIVE_EXPIRY", "DeadlineTransport", "authorization", "tls_context"]

# uvicorn closes a connection that was idle for 5 seconds. A request sent just then is lost, and a lost step
# cannot be repeated, so a connection is given up before the server does it.
KEEPALIVE_EXPIRY = 4.0


class DeadlineTransport(httpx.HTTPTransport):
    """One kept-alive connection to one server; a request's extension ``deadline`` is on `time.monotonic`.

    Proxies are not used: the servers it is for are on this machine or near it.

    Args:
        server: Base URL; the TLS context is made only for https, and shared.
        stats: Where connections are counted.
    """

    def __init__(self, server: str, stats: Stats) -> None:
        # No context is made for plain HTTP, where none is needed.
        context = tls_context() if server.startswith("https:") else None
        super().__init__(verify=context or False, trust_env=False)
        self._line = _Line(stats)
        # httpx offers no way to hand a network backend to its transport, and this is all that it is made of.
        self._pool = httpcore.ConnectionPool(
            ssl_context=context,
            max_connections=1,
            max_keepalive_connections=1,
            keepalive_expiry=KEEPALIVE_EXPIRY,
            network_backend=_Backend(self._line),
        )
        # Its own lock is for threads, of which one at a time is here. Ctrl-C just after it was taken would
        # leave it taken, and httpcore waiting for it.
        self._pool._optional_thread_lock = contextlib.nullcontext()  # type: ignore[assignment]  # noqa: SLF001

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request and return the response, its body yet to be read."""
        self._line.deadline = request.extensions.get("deadline", float("inf"))
        return super().handle_request(request)

    @property
    def has_surplus(self) -> bool:
        """Whether the server has sent more than the reply that was read to its end.

        httpcore would read it as the beginning of the next reply, and has no word of it in public.
        """
        for connection in self._pool.connections:
            state = getattr(getattr(connection, "_connection", None), "_h11_state", None)
            if state is not None and state.trailing_data[0]:
                return True
        return False

    def abandon(self) -> None:
        """Close the socket and touch nothing else; the transport is of no use after it.

        For when a request was interrupted, say by Ctrl-C: httpcore may then hold a lock of its own for good.
        """
        if self._line.stream is not None:
            self._line.stream.close()


class _Line:
    """The socket that is open, and the deadline of the request under way on it."""

    def __init__(self, stats: Stats) -> None:
        self.stats = stats
        self.deadline = float("inf")
        self.stream: httpcore.NetworkStream | None = None

    def left(self, timeout: float | None, late: type[Exception]) -> float:
        """Return the seconds that a wait may still take.

        Raises:
            Exception: None are left; of the type given.
        """
        left = self.deadline - time.monotonic()
        if left <= 0:
            raise late("the deadline has passed")
        return left if timeout is None else min(left, timeout)


class _Stream(httpcore.NetworkStream):
    """A connection whose waits end at the deadline.

    httpcore writes the head of a request and its body one after the other. They are sent as one, when the
    reply is to be read: the server is woken up once.
    """

    def __init__(self, inner: httpcore.NetworkStream, line: _Line) -> None:
        self._inner = line.stream = inner
        self._line = line
        self._unsent: list[bytes] = []

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        if self._unsent:
            request = b"".join(self._unsent)
            self._unsent.clear()
            self._inner.write(request, self._line.left(timeout, httpcore.WriteTimeout))
        return self._inner.read(max_bytes, self._line.left(timeout, httpcore.ReadTimeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._unsent.append(buffer)

    def close(self) -> None:
        self._inner.close()

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.NetworkStream:
        left = self._line.left(timeout, httpcore.ConnectTimeout)
        return _Stream(self._inner.start_tls(ssl_context, server_hostname, left), self._line)

    def get_extra_info(self, info: str) -> Any:
        return self._inner.get_extra_info(info)


class _Backend(httpcore.SyncBackend):
    """Opens connections that keep to the deadline."""

    def __init__(self, line: _Line) -> None:
        self._line = line

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.NetworkStream:
        left = self._line.left(timeout, httpcore.ConnectTimeout)
        stream = super().connect_tcp(host, port, left, local_address, socket_options)
        self._line.stats.connections += 1
        return _Stream(stream, self._line)


@lru_cache(maxsize=64)
def authorization(server: str) -> dict[str, str]:
    """Return the header for the user name and password that a URL carries; nothing where it carries none."""
    parts = urlsplit(server)
    if parts.username is None:
        return {}
    user = f"{unquote(parts.username)}:{unquote(parts.password or '')}".encode()
    return {"Authorization": f"Basic {base64.b64encode(user).decode('ascii')}"}


@lru_cache(maxsize=1)
def tls_context() -> ssl.SSLContext:
    """Return the one TLS context that all connections share."""
    return httpx.create_ssl_context()
