"""A server on a real socket with scripted answers: good, bad, slow, in parts or none.

>>> with FakeServer(lambda request: {"asked": request.path}) as server:
...     httpx.get(f"{server.url}/it").json()
{'asked': '/it'}
"""

from __future__ import annotations

import contextlib
import json
import socket
import ssl
import threading
from collections.abc import Callable
from http import HTTPStatus
from typing import Any, NamedTuple

from typing_extensions import Self


class Request(NamedTuple):
    """What was asked.

    Attributes:
        method: Such as ``POST``.
        path: Without the query.
        query: What follows the question mark.
        headers: By their names in small letters.
        content: The body.
        raw: All of it, as it came.
    """

    method: str
    path: str
    query: str
    headers: dict[str, str]
    content: bytes
    raw: bytes

    @property
    def json(self) -> Any:
        """The value in the body; an empty object where there is no body."""
        return json.loads(self.content or b"{}")


class Connection:
    """What an answer writes on, if it is a callable.

    Attributes:
        socket: The socket, or the TLS that is spoken on it.
    """

    def __init__(self, connected: socket.socket, over: threading.Event) -> None:
        self.socket = connected
        self._over = over
        self._ended = False

    def send(self, *parts: bytes, pause: float = 0) -> None:
        """Send parts one after another, with a pause in seconds after each."""
        for part in parts:
            self.socket.sendall(part)
            if pause and self.wait(pause):
                return

    def wait(self, seconds: float) -> bool:
        """Wait, but no longer than the server is there; return whether it is gone."""
        return self._over.wait(seconds)

    def hang_up(self) -> None:
        """Close the connection when the answer is done."""
        self._ended = True

    @property
    def ended(self) -> bool:
        return self._ended


Answer = Any
"""An answer: bytes are sent as they are, a callable is given the connection, a pair is a status and a JSON
value, and any other value is sent as JSON with status 200."""


class FakeServer:
    """A server on a port of loopback that it shares with nobody, and that no later one in this process gets.

    Args:
        answer: What answers a request. It is called in a thread for each connection.
        tls: Whom the server is to clients, for https.

    Attributes:
        url: Its base URL.
        requests: What was asked, in order.
        connections: How many were taken.
        over: Set when the server ends, for those who wait.
    """

    _ports: set[int] = set()  # noqa: RUF012 - of all servers: the library keeps its state of an address

    def __init__(self, answer: Callable[[Request], Answer], *, tls: ssl.SSLContext | None = None) -> None:
        self.answer = answer
        self.requests: list[Request] = []
        self.connections = 0
        self.over = threading.Event()
        self._tls = tls
        self._socket = self._listen()
        self._address = self._socket.getsockname()
        self.url = f"http{'s' if tls else ''}://127.0.0.1:{self._address[1]}"
        self._open: set[socket.socket] = set()
        self._accepting = threading.Thread(target=self._accept, daemon=True)
        self._accepting.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def open_connections(self) -> int:
        """How many connections neither side has closed."""
        return len(self._open)

    def stop(self) -> None:
        """Take no more connections and end those there are. May be called again."""
        if self.over.is_set():
            return
        self.over.set()
        with contextlib.suppress(OSError), socket.create_connection(self._address, timeout=5):
            pass  # `accept` returns
        self._accepting.join()
        self._socket.close()
        for connected in list(self._open):
            with contextlib.suppress(OSError):
                connected.shutdown(socket.SHUT_RDWR)

    def _listen(self) -> socket.socket:
        from inside import known_ports

        passed_over, known = [], known_ports()
        try:
            while True:
                listening = socket.create_server(("127.0.0.1", 0), backlog=512)
                port = listening.getsockname()[1]
                if port not in self._ports and port not in known:
                    self._ports.add(port)
                    return listening
                passed_over.append(listening)
        finally:
            for listening in passed_over:
                listening.close()

    def _accept(self) -> None:
        while True:
            connected, _ = self._socket.accept()
            if self.over.is_set():
                connected.close()
                return
            self.connections += 1
            self._open.add(connected)
            threading.Thread(target=self._serve, args=(connected,), daemon=True).start()

    def _serve(self, connected: socket.socket) -> None:
        with contextlib.suppress(OSError), contextlib.ExitStack() as stack:
            stack.callback(self._open.discard, connected)
            stack.enter_context(connected)
            connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if self._tls is not None:
                connected = stack.enter_context(self._tls.wrap_socket(connected, server_side=True))
            connection, received = Connection(connected, self.over), b""
            while not connection.ended:
                request, received = _read(connected, received)
                if request is None:
                    return
                self.requests.append(request)
                self._reply(connection, self.answer(request))

    @staticmethod
    def _reply(connection: Connection, answer: Answer) -> None:
        if callable(answer):
            answer(connection)
        elif isinstance(answer, bytes):
            connection.send(answer)
        elif isinstance(answer, tuple):
            connection.send(as_json(answer[1], answer[0]))
        else:
            connection.send(as_json(answer))


def http(content: bytes, status: str = "200 OK", *headers: str) -> bytes:
    """Return a whole response."""
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(content)}", *headers]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + content


def as_json(value: Any, status: int = 200) -> bytes:
    """Return a whole response whose body is a JSON value."""
    phrase = f"{status} {HTTPStatus(status).phrase}"
    return http(json.dumps(value).encode(), phrase, "Content-Type: application/json")


def as_page(document: str, status: str = "200 OK", *headers: str) -> bytes:
    """Return a whole response whose body is a page of HTML."""
    return http(document.encode(), status, "Content-Type: text/html; charset=utf-8", *headers)


def in_turn(*answers: Answer) -> Callable[[Request], Answer]:
    """Return what answers the n-th request by the n-th of the answers, and all that follow by the last."""
    left = list(answers)
    return lambda request: left.pop(0) if len(left) > 1 else left[0]


def then_hang_up(*parts: bytes) -> Callable[[Connection], None]:
    """Return an answer that sends parts, if any, and closes the connection."""

    def answer(connection: Connection) -> None:
        connection.send(*parts)
        connection.hang_up()

    return answer


hang_up = then_hang_up()
"""The answer that is none: the connection is closed."""


def never(connection: Connection) -> None:
    """Answer not at all, for as long as the server is there."""
    connection.wait(60)
    connection.hang_up()


def dripping(head: bytes, drop: bytes, *, seconds: float = 20) -> Callable[[Connection], None]:
    """Return an answer that sends its head and then a drop every 50 ms, for some seconds."""

    def answer(connection: Connection) -> None:
        connection.send(head)
        connection.send(*[drop] * round(seconds / 0.05), pause=0.05)
        connection.hang_up()

    return answer


def _read(connected: socket.socket, received: bytes) -> tuple[Request | None, bytes]:
    """Return the next request, None at the end of the connection, and what came after it."""
    while b"\r\n\r\n" not in received:
        chunk = connected.recv(65536)
        if not chunk:
            return None, b""
        received += chunk
    head, _, rest = received.partition(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    length = int(headers.get("content-length", 0))
    while len(rest) < length:
        chunk = connected.recv(65536)
        if not chunk:
            return None, b""
        rest += chunk
    content, rest = rest[:length], rest[length:]
    method, target, _ = first.split(" ")
    path, _, query = target.partition("?")
    return Request(method, path, query, headers, content, head + b"\r\n\r\n" + content), rest
