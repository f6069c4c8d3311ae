"""One kept-alive connection in an event loop, with one request under way at a time.

asyncio transports the bytes and httptools parses them. A client library has too much overhead per request:
with 64 environments in lockstep, on a server that takes 50 ms per step, aiohttp by itself reaches .8 of the
ideal throughput (``benchmarks/side_by_side.py``).
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import time
import weakref
from collections.abc import AsyncGenerator, Callable
from typing import TYPE_CHECKING

from agentgym_gym._http import abandoned
from agentgym_gym._http.asyncio_race import look_up, race
from agentgym_gym._http.certificates import tls_context
from agentgym_gym._http.http11 import Headers, ResponseParser, origin_of, request_of
from agentgym_gym._http.receive_buffer import buffer_of
from agentgym_gym._http.sockets import (
    Link,
    Replacement,
    is_address,
    is_readable,
    unreachable,
)
from agentgym_gym._lifecycle import ProcessId
from agentgym_gym._text import reason
from agentgym_gym.calls import Reply
from agentgym_gym.errors import BadOption, ConnectionLost, Fault, ServerTimeout, ServerUnreachable

if TYPE_CHECKING:
    from agentgym_gym._http.asyncio_race import Address
    from agentgym_gym._http.retry import Send
    from agentgym_gym.calls import Call

__all__ = ["Connection"]


class Connection(Replacement, asyncio.BufferedProtocol):
    """A connection to one server; created by `open`.

    It is not reused after an error, after bytes beyond the reply, or if the server will close it: a late
    reply must not be taken for the reply to the next request.

    Args:
        headers: Sent with every request, in addition to the default headers.

    Attributes:
        link: Shows whether it is open.
        outlives_loop: Whether the link outlives its event loop, for an environment that was not closed.
        status: The HTTP status of the last reply; 0 if its head did not arrive.
    """

    link: Link
    outlives_loop = False
    status = 0

    def __init__(self, headers: Headers) -> None:
        self._headers = headers
        self._loop = asyncio.get_running_loop()
        self._process = ProcessId()
        self._transport: asyncio.Transport | None = None
        self._descriptor = -1
        self._parser: ResponseParser | None = None
        self._call: Call | None = None
        self._buffer = buffer_of(self._loop)
        self._received: list[bytes] = []  # of the reply under way, for a thread that reads the rest
        self._kept = 0  # length of that list before the last read
        self._answer: Callable[[Reply | Fault], None] | None = None
        self._deadline = 0.0
        self._alarm: asyncio.TimerHandle | None = None
        self._alarm_at = 0.0
        self._given_up = False

    @classmethod
    async def open(cls, request: Send, headers: Headers) -> Connection:
        """Connect to the server of a call, at the first of its addresses that answers (RFC 8305).

        Raises:
            ServerUnreachable: No connection was established in time.
            BadOption: The server's URL is invalid.
        """
        call, seconds = request.call, min(request.left, request.connect)
        origin = origin_of(call.server, headers)
        deadline = time.monotonic() + seconds
        looked_up = is_address(origin.host)
        try:
            # A separate timeout, because a slow look-up is no evidence about the server.
            addresses = await asyncio.wait_for(look_up(origin.host, origin.port), seconds)
            looked_up = True
            connecting = _connect(addresses, lambda: cls(headers), origin.host if origin.tls else None)
            connection = await asyncio.wait_for(connecting, max(0.001, deadline - time.monotonic()))
        except asyncio.TimeoutError:
            what = "connect" if looked_up else f"look up the name {origin.host}"
            raise ServerUnreachable(
                f"{call} could not {what} in {seconds:.3g} seconds", server_slow=looked_up
            ) from None
        except UnicodeError as error:
            raise BadOption(f"{call} is not a request that can be made: {reason(error)}") from error
        except OSError as error:
            raise unreachable(call, error) from error
        (await _connections_of_this_loop()).add(connection)
        return connection

    @property
    def usable(self) -> bool:
        """Whether another request can be sent: it belongs to this process and event loop, is open and idle.

        The event loop may not have noticed yet that the server closed it, so this checks the socket itself.
        """
        return (
            self._transport is not None
            and not self._given_up
            and self._process.current
            and self._loop is _running_loop()
            and not is_readable(self._descriptor)
        )

    def send(self, request: Send, answer: Callable[[Reply | Fault], None]) -> None:
        """Send a request.

        Args:
            request: The request.
            answer: Called with the reply, or with a fault: `ConnectionLost` if the connection broke or the
                reply was not HTTP, `ServerTimeout` if it was incomplete at the deadline, `BadReply` if it is
                too large, cannot be decoded or is a redirect. Not called if `close` comes first.

        Raises:
            BadOption: The request is invalid.
            ConnectionLost: The new connection is closed already: a dying server still accepts some.
        """
        data = request_of(request.call, self._headers)
        if self._transport is None:
            raise ConnectionLost(f"{request.call} lost its connection before it was sent")
        parser = ResponseParser(request.call)
        self._wake_at(request.deadline)
        self._received, self._kept = [], 0
        # Last, because an interrupt from here on leaves a reply to expect.
        self._call, self._answer, self._parser = request.call, answer, parser
        self._transport.write(data)

    def give_up(self) -> None:
        """Stop reading, but keep the connection open: while it lives, the server was not restarted."""
        if self._answer is not None:
            self._leave()
        self._answer = self._parser = None
        if self._transport is not None and not self._given_up:
            self._given_up = True
            self._transport.pause_reading()

    def close(self) -> None:
        """Close immediately, without flushing; call it in its own event loop, or if that is not running."""
        if self._answer is not None:
            self._leave()
        self._answer = self._parser = None
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None
        if self._transport is not None:
            self._transport.abort()
            self._transport = None  # after it, so that Ctrl-C loses no open connection

    def end(self) -> None:
        """Close with the event loop."""
        if self.outlives_loop:
            self.link.keep()
        self.close()

    def abandon(self) -> None:
        """Close this connection and the one that it has replaced, from any thread, process or event loop."""
        self.close_before()
        self.disconnect()

    def disconnect(self) -> None:
        """Close only this connection, from any thread, process or event loop."""
        if not self._process.current:
            _inherited.append(self)
        elif self._loop.is_running() and self._loop is not _running_loop():
            with contextlib.suppress(RuntimeError):  # the loop and the connection are closed by now
                self._loop.call_soon_threadsafe(self.close)
        elif not self._loop.is_closed():
            self.close()
        else:  # by a second Ctrl-C, before its connections
            self.leave()

    def leave(self) -> None:
        """Let another thread read the reply under way, if there is one, since the event loop has ended."""
        if self._answer is not None:
            self._leave()
            self._answer = self._parser = None

    # Callbacks of the event loop.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport."""
        self._transport = transport  # type: ignore[assignment]  # that of a stream
        self._descriptor = transport.get_extra_info("socket").fileno()

    def get_buffer(self, sizehint: int) -> memoryview:
        """Return the buffer for received data."""
        view = self._buffer.lend(self)
        self._kept = len(self._received)
        return view

    def keep(self, data: bytes) -> None:
        """Keep the data of an interrupted read for a thread that reads the rest of the reply."""
        self._received.append(data)

    def buffer_updated(self, nbytes: int) -> None:
        """Parse received data."""
        data = self._buffer.received(nbytes)
        if self._call is not None and self._call.late is not None:
            self._received.append(data)
        self._buffer.clear(nbytes)
        if self._parser is None:
            self.close()  # data without a request
            return
        try:
            self._parser.feed(data)
        except Fault as fault:
            self._settle(fault)
        else:
            if self._parser.complete:
                self._finish(self._parser)

    def eof_received(self) -> None:
        """Complete a reply without a length at the end of the stream."""
        if self._parser is not None:
            self._parser.end()
            if self._parser.complete:
                self._finish(self._parser)

    def connection_lost(self, error: Exception | None) -> None:
        """Report the loss to the caller of the request under way."""
        self._transport = None
        why = "the server closed it" if error is None else reason(error)
        self._settle(ConnectionLost(f"{self._call} lost its connection: ", why))

    def _finish(self, parser: ResponseParser) -> None:
        try:
            reply = parser.reply(self.link)
        except Fault as fault:
            self._settle(fault)
        else:
            self._settle(reply, last=parser.last)

    def _settle(self, how: Reply | Fault, *, last: bool = False) -> None:
        """Pass the outcome to the caller, as the last action here."""
        self.status = 0 if self._parser is None else self._parser.status
        try:
            answer, self._answer, self._parser = self._answer, None, None
            if isinstance(how, ConnectionLost) or (isinstance(how, Reply) and how.closing):
                self.close()
            elif last or isinstance(how, Fault):
                self.give_up()
            if isinstance(how, Reply):
                self.close_before()
            if answer is not None:
                answer(how)
        except BaseException:
            if isinstance(how, Reply):
                abandoned.pass_on(how)  # Ctrl-C came before the flow could use the reply
            raise

    def _leave(self) -> None:
        """Read the rest of the reply in another thread, if the call has a handler for late replies.

        That thread reads from a copy of the socket, so that this connection can be closed. Under TLS there is
        no copy.
        """
        call, transport = self._call, self._transport
        if call is None or call.late is None or transport is None:
            return
        if transport.get_extra_info("sslcontext") is not None or transport.get_write_buffer_size():
            return
        parser = ResponseParser(call)  # a new parser: an interrupt may have stopped the old one half-way
        # Transports of other event loops may not support copies.
        with contextlib.suppress(Fault, OSError, TypeError, AttributeError):
            if len(self._received) == self._kept:
                self._received.append(self._buffer.interrupted(self))
            for data in filter(None, self._received):
                parser.feed(data)
            copy: socket.socket = transport.get_extra_info("socket").dup()
            if not abandoned.listen(copy, parser, call):
                copy.close()

    def _wake_at(self, deadline: float) -> None:
        """Watch the deadline, with one timer that is reset only when it fires.

        A timer per request would cost as much as parsing its reply.
        """
        self._deadline = deadline
        if self._alarm is not None and self._alarm_at <= deadline:
            return
        if self._alarm is not None:
            self._alarm.cancel()
        self._alarm_at = deadline
        self._alarm = self._loop.call_later(max(0.001, deadline - time.monotonic()), self._ring)

    def _ring(self) -> None:
        self._alarm = None
        if self._answer is None:
            return
        if time.monotonic() < self._deadline:
            self._wake_at(self._deadline)
        else:
            self._leave()
            self._settle(ServerTimeout(f"{self._call} had no whole reply in the time allowed"))


async def _connect(
    addresses: list[Address], make: Callable[[], Connection], tls_name: str | None
) -> Connection:
    connected = await race(addresses)
    tls = None if tls_name is None else tls_context()
    _, connection = await asyncio.get_running_loop().create_connection(
        make, sock=connected, ssl=tls, server_hostname=tls_name
    )
    connection.link = Link(connected.fileno)
    return connection


_inherited: list[Connection] = []  # kept forever, because the garbage collector would close them

# The connections of each event loop. The loop keeps its guard alive, and nothing here keeps the loop alive.
_of_loop: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, weakref.WeakSet[Connection]] = (
    weakref.WeakKeyDictionary()
)
_NEVER = 1e9  # seconds


async def _connections_of_this_loop() -> weakref.WeakSet[Connection]:
    """Return the connections that are closed together with this event loop, as by ``asyncio.run``."""
    loop = asyncio.get_running_loop()
    if loop not in _of_loop:
        connections = _of_loop[loop] = weakref.WeakSet()
        guard = _guard(connections)
        await guard.__anext__()
        loop.call_later(_NEVER, guard.aclose)
    return _of_loop[loop]


async def _guard(connections: weakref.WeakSet[Connection]) -> AsyncGenerator[None, None]:
    """Close the connections when the event loop shuts down its asynchronous generators."""
    try:
        yield
    finally:
        for connection in list(connections):
            connection.end()
        await asyncio.sleep(0)  # asyncio closes sockets in its next iteration


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None
