"""Limits on requests: the size of a body, the time, number and size of unfinished requests, and connections.

uvicorn has none of these limits: half a request would stay until its client closes the connection.
"""

from __future__ import annotations

from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from starlette.responses import JSONResponse
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

if TYPE_CHECKING:
    import asyncio

    from starlette.responses import Response
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

__all__ = [
    "BODY_SECONDS",
    "HEAD_SECONDS",
    "INCOMING_LIMITS",
    "MAX_HEAD_BYTES",
    "MAX_UNFINISHED",
    "MAX_UNFINISHED_BYTES",
    "SPARE_FILES",
    "IncomingLimits",
    "LimitBody",
    "limited_protocol",
]

HEAD_SECONDS = 30.0
"""Time limit for the head of a request, and for the first request of a connection, in seconds.

Clients send a head in one packet. If that packet is lost, its retransmissions take a few seconds.
"""

BODY_SECONDS = 60.0
"""Time limit for the body of a request, in seconds: the largest body, 1 MiB, then needs 17 kB/s."""

MAX_HEAD_BYTES = 65_536
"""Size limit of a head. Browsers and proxies send a few kB; nginx's own limit is 32 kB."""

MAX_UNFINISHED = 1024
"""Maximum number of connections with unfinished requests.

A request of usual size arrives in one packet and never counts. A thousand steps that are split in two still
fit.
"""

MAX_UNFINISHED_BYTES = 64 * 1_048_576
"""Maximum size of all unfinished requests together: 64 bodies of the largest size."""

SPARE_FILES = 256
"""How many files the server keeps for itself, at most a quarter of its limit.

Connections beyond get a response and are closed. As many may arrive at once; more of them wait in the system.
"""

_REFUSED_SECONDS = 5.0  # for the request of such a connection
_LATE_SECONDS = 1.0  # a timer that is later than this was delayed by the server's own work


@dataclass(frozen=True, kw_only=True)
class IncomingLimits:
    """Limits on unfinished requests; the constants of this module explain the defaults."""

    head_seconds: float = HEAD_SECONDS
    body_seconds: float = BODY_SECONDS
    max_head_bytes: int = MAX_HEAD_BYTES
    max_unfinished: int = MAX_UNFINISHED
    max_unfinished_bytes: int = MAX_UNFINISHED_BYTES


INCOMING_LIMITS = IncomingLimits()
"""The limits of every server."""


class LimitBody:
    """Middleware that reads each body before the application does, and responds 413 if it is too large.

    Args:
        app: The application.
        limit: Maximum size of a body in bytes, `ServerOptions.max_body_bytes`.
    """

    def __init__(self, app: ASGIApp, limit: int) -> None:
        self._app = app
        self._limit = limit

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request as an ASGI application."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        body = bytearray()
        more = True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                return
            body += message.get("body", b"")
            more = message.get("more_body", False)
            if len(body) > self._limit:
                await self._refusal(scope, receive, send)
                return
        whole: list[Message] = [{"type": "http.request", "body": bytes(body), "more_body": False}]

        async def replay() -> Message:
            return whole.pop() if whole else await receive()

        await self._app(scope, replay, send)

    @property
    def _refusal(self) -> Response:
        detail = f"The request body is larger than {self._limit} bytes, the most that this server reads."
        # The rest of the body would be read as the next request, so the connection is closed here.
        return JSONResponse({"detail": detail}, status_code=413, headers={"connection": "close"})


def limited_protocol(limits: IncomingLimits) -> type[HttpToolsProtocol]:
    """Return uvicorn's HTTP protocol with limits, which all its connections share."""

    class Protocol(_LimitedProtocol):
        unfinished = _Unfinished(limits)

    return Protocol


class _Unfinished:
    """The connections with unfinished requests, in the order in which these began."""

    def __init__(self, limits: IncomingLimits) -> None:
        self.limits = limits
        self._sizes: dict[_LimitedProtocol, int] = {}
        self._total = 0

    def update(self, connection: _LimitedProtocol, size: int) -> None:
        """Set the size of a connection's unfinished request; cut the oldest ones beyond the limits.

        A request that arrives as quickly as it can is never the oldest for long.
        """
        self._total += size - self._sizes.get(connection, 0)
        self._sizes[connection] = size
        while len(self._sizes) > self.limits.max_unfinished or self._total > self.limits.max_unfinished_bytes:
            oldest = next(iter(self._sizes))
            self.remove(oldest)
            oldest.cut(
                HTTPStatus.SERVICE_UNAVAILABLE, "too many unfinished requests; this one was open the longest"
            )

    def remove(self, connection: _LimitedProtocol) -> None:
        """Remove a connection, if it is there."""
        self._total -= self._sizes.pop(connection, 0)


class _LimitedProtocol(HttpToolsProtocol):
    """One connection, which is closed if a request stays unfinished for too long.

    A connection that is idle after a response has no deadline here; uvicorn closes it after its own time.
    """

    unfinished: _Unfinished

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._deadline: float | None = None  # of the unfinished request; None between requests
        self._in_head = False
        self._size = 0  # bytes of the unfinished request
        self._chunk_size = 0  # bytes received last, if no request has ended in them
        self._timer: asyncio.TimerHandle | None = None
        self._refused = False  # because this process can open few more files

    # The parser catches and hides exceptions of its callbacks, so these only set numbers.

    def on_message_begin(self) -> None:
        """Start the time of a head."""
        super().on_message_begin()
        self._deadline = self.loop.time() + self.unfinished.limits.head_seconds
        self._in_head = True
        self._size = self._chunk_size

    def on_headers_complete(self) -> None:
        """Start the time of a body."""
        super().on_headers_complete()
        self._deadline = self.loop.time() + self.unfinished.limits.body_seconds
        self._in_head = False

    def on_message_complete(self) -> None:
        """Stop the time."""
        super().on_message_complete()
        self._deadline = None
        self._size = self._chunk_size = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start the time of the first request."""
        super().connection_made(transport)
        self._refused = _is_last(transport)
        seconds = _REFUSED_SECONDS if self._refused else self.unfinished.limits.head_seconds
        self._deadline = self.loop.time() + seconds
        self._set_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        self._forget()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Parse bytes, and count the bytes of an unfinished request."""
        if self._refused:  # not before: a client that still sends would lose the response
            detail = "this server has too many open connections; allow it more files (ulimit -n)"
            self.cut(HTTPStatus.SERVICE_UNAVAILABLE, detail)
            return
        self._chunk_size = len(data)
        self._size += len(data)
        super().data_received(data)
        if self._deadline is None:
            self._forget()
        elif self.transport.is_closing():
            return
        elif self._in_head and self._size > self.unfinished.limits.max_head_bytes:
            detail = f"the head of the request is larger than {self.unfinished.limits.max_head_bytes} bytes"
            self.cut(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, detail)
        else:
            self._set_timer()
            self.unfinished.update(self, self._size)

    def cut(self, status: HTTPStatus, detail: str) -> None:
        """Close the connection, after an error response unless an earlier request still waits for its own."""
        self._forget()
        if self.transport.is_closing():
            return
        if not self._is_answering():
            content = f"{detail}\n".encode("ascii")
            head = (
                f"HTTP/1.1 {status.value} {status.phrase}\r\nContent-Type: text/plain; charset=utf-8\r\n"
                f"Content-Length: {len(content)}\r\nConnection: close\r\n\r\n"
            )
            self.transport.write(head.encode("ascii") + content)
        self.transport.close()

    def _is_answering(self) -> bool:
        """Return whether the application works on an earlier request of the connection."""
        cycle = self.cycle
        if self.pipeline or cycle is None or cycle.response_complete:
            return bool(self.pipeline)
        return cycle.response_started or not cycle.more_body

    def _forget(self) -> None:
        self._deadline = None
        self.unfinished.remove(self)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _set_timer(self) -> None:
        if self._timer is None and self._deadline is not None:
            self._timer = self.loop.call_at(self._deadline, self._check_time)

    def _check_time(self) -> None:
        self._timer = None
        if self._deadline is None:
            return
        late = self.loop.time() - self._deadline
        if late > _LATE_SECONDS or self.flow.read_paused or self._is_answering():
            # The client may have sent the rest, which this server has not read; or it waits for a response.
            limits = self.unfinished.limits
            seconds = limits.head_seconds if self._in_head else limits.body_seconds
            self._deadline = self.loop.time() + seconds
        elif late >= 0:
            self.cut(HTTPStatus.REQUEST_TIMEOUT, "the request was not complete within the time limit")
            return
        self._set_timer()


def _is_last(transport: asyncio.Transport) -> bool:
    """Return whether a connection has one of the last descriptors: the system gives the lowest first."""
    try:
        import resource  # noqa: PLC0415 - not on Windows
    except ImportError:
        return False
    most, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    number: int = transport.get_extra_info("socket").fileno()
    return most != resource.RLIM_INFINITY and number >= most - min(SPARE_FILES, most // 4)
