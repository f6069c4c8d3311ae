"""One kept-alive connection on a blocking socket, for the synchronous driver."""

from __future__ import annotations

import contextlib
import socket
import time
from typing import TYPE_CHECKING

from agentgym_gym._http import abandoned
from agentgym_gym._http.certificates import tls_context
from agentgym_gym._http.http11 import Headers, ResponseParser, origin_of, request_of
from agentgym_gym._http.sockets import (
    Link,
    Replacement,
    connect,
    is_end_without_shutdown,
    is_readable,
    receiver,
    unreachable,
)
from agentgym_gym._lifecycle import ProcessId
from agentgym_gym._text import reason
from agentgym_gym.errors import BadOption, ConnectionLost, Fault, ServerTimeout

if TYPE_CHECKING:
    from agentgym_gym._http.retry import Send
    from agentgym_gym.calls import Call, Reply

__all__ = ["BlockingConnection"]

_CHUNK = 65_536  # bytes per read


class BlockingConnection(Replacement):
    """A connection to one server, with one request under way at a time; created by `open`.

    Args:
        connected: The socket.
        headers: Sent with every request, in addition to the default headers.

    Attributes:
        link: Shows whether it is open.
        busy: Whether it cannot be used for another request: the reply to the last one was not received yet,
            or the connection is not to be reused after it.
    """

    def __init__(self, connected: socket.socket, headers: Headers) -> None:
        self.link = Link(connected.fileno)
        self._socket = connected
        self._read = receiver(connected)
        self._headers = headers
        self._process = ProcessId()
        self._received: list[bytes] = []  # of the reply under way
        self.busy = False

    @classmethod
    def open(cls, request: Send, headers: Headers) -> BlockingConnection:
        """Connect to the server of a call.

        Raises:
            ServerUnreachable: No connection was established in time.
            BadOption: The server's URL is invalid.
        """
        call = request.call
        origin = origin_of(call.server, headers)
        deadline = time.monotonic() + min(request.left, request.connect)
        try:
            connected = connect(origin.host, origin.port, deadline)
            try:
                connected.settimeout(max(0.001, deadline - time.monotonic()))
                if origin.tls:
                    connected = tls_context().wrap_socket(connected, server_hostname=origin.host)
            except BaseException:
                connected.close()
                raise
        except UnicodeError as error:
            raise BadOption(f"{call} is not a request that can be made: {reason(error)}") from error
        except OSError as error:
            raise unreachable(call, error) from error
        return cls(connected, headers)

    @property
    def usable(self) -> bool:
        """Whether another request can be sent: it belongs to this process, is open, idle and has no data."""
        number = self._socket.fileno()  # -1 if it was closed
        return self._process.current and not self.busy and number >= 0 and not is_readable(number)

    def exchange(self, request: Send) -> tuple[Reply, bool]:
        """Send a request and read the reply to it.

        Returns:
            The reply, and whether the connection can be reused.

        Raises:
            ServerTimeout: The reply was incomplete at the deadline.
            ConnectionLost: The connection broke, or the reply was not HTTP.
            BadReply: The reply is too large, cannot be decoded or is a redirect.
            BadOption: The request is invalid.
        """
        call, connected = request.call, self._socket
        data_sent = request_of(call, self._headers)
        parser = ResponseParser(call)
        try:
            connected.settimeout(request.left)
            self._received, self.busy = [], True
            connected.sendall(data_sent)
            while not parser.complete:
                left = request.deadline - time.monotonic()
                if left <= 0:
                    raise TimeoutError
                connected.settimeout(left)
                self._receive()
                data = self._received[-1]
                if call.late is None:
                    self._received.clear()  # no other thread will read it
                if data:
                    parser.feed(data)
                else:
                    parser.end()
                    if not parser.complete:
                        raise ConnectionLost(f"{call} lost its connection: ", "the server closed it")
        except TimeoutError as error:
            raise ServerTimeout(f"{call} had no whole reply in the time allowed") from error
        except OSError as error:
            raise ConnectionLost(f"{call} lost its connection: ", reason(error)) from error
        reply = parser.reply(self.link)
        return reply, not parser.last

    def _receive(self) -> None:
        """Append data to `_received`; empty at the end of the stream.

        Python code does not run between the system call and the list, so that a Ctrl-C cannot lose data.
        """
        try:
            self._received.extend(map(self._read, (_CHUNK,)))
        except OSError as error:
            if not is_end_without_shutdown(error):
                raise
            self._received.append(b"")

    def leave(self, call: Call) -> None:
        """Read the rest of a reply in another thread, if the call has a handler for late replies.

        A copy of the socket stays here, so that this connection is open until it is closed.

        Args:
            call: The abandoned call.
        """
        if call.late is None or not self.busy:
            return
        parser = ResponseParser(call)  # a new parser: an interrupt may have stopped the old one half-way
        with contextlib.suppress(Fault, OSError):
            for data in self._received:
                parser.feed(data) if data else parser.end()
            original = self._socket
            self._socket = socket.fromfd(original.fileno(), original.family, original.type)
            self.link.fileno = self._socket.fileno
            if not abandoned.listen(original, parser, call):
                original.close()

    def disconnect(self) -> None:
        """Close immediately, without a TLS shutdown; in a forked child, close only the child's copy."""
        self._socket.close()

    def close(self) -> None:
        """Close this connection and the one that it has replaced."""
        self.close_before()
        self.disconnect()
