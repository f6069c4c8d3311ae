"""Forwarding of calls from clients to a server, with injected faults: the proxy without its listener."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
from http import HTTPStatus
from urllib.parse import urlsplit

from agentgym_gym._addresses import parse_urls
from agentgym_gym._http.http11 import origin_of
from agentgym_gym._http.sockets import tls_context
from agentgym_gym._text import redact
from agentgym_gym.errors import BadOption
from agentgym_gym.testing._created_envs import Created, Journal
from agentgym_gym.testing._faults import ARRIVES, ERROR, PAGE, Faults, stage_of
from agentgym_gym.testing._messages import Message, read_reply, read_request, redirected_to

__all__ = ["MAX_HEAD_BYTES", "Address", "Forwarder"]

MAX_HEAD_BYTES = 1 << 20
"""How long the head of a message may be."""

_IDLE_SECONDS = 4.0  # after which a connection is opened anew: uvicorn closes one after 5
_CONNECT_SECONDS = 5.0  # after which a server counts as gone
_RESET = struct.pack("ii", 1, 0)  # linger for no time at all: closing the socket then resets the connection

_BROKEN = (OSError, EOFError, ValueError, asyncio.LimitOverrunError)
"""How a connection may fail, or what comes over it be no HTTP."""


class Address:
    """The address of a server.

    Args:
        server: Its base URL.

    Attributes:
        host: The value of the header ``Host``.
        prefix: The path of its base URL.

    Raises:
        BadOption: It is no such URL.
    """

    def __init__(self, server: str) -> None:
        url, *more = parse_urls(server, "server")
        if more or "@" in url:
            raise BadOption(f"server={redact(server)!r} should be one URL, without a user name")
        origin = origin_of(url)
        self.host = urlsplit(url).netloc.encode("latin-1")
        self.prefix = origin.path.encode("latin-1")
        self._to = (origin.host, origin.port)
        self._context = tls_context() if origin.tls else None

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Open a connection.

        Raises:
            OSError: There is none to be had.
        """
        opening = asyncio.open_connection(*self._to, ssl=self._context, limit=MAX_HEAD_BYTES)
        try:
            return await asyncio.wait_for(opening, _CONNECT_SECONDS)
        except asyncio.TimeoutError as error:  # not an OSError before Python 3.11
            raise OSError("no connection in time") from error


class _Line:
    """The connection to the server that belongs to one client."""

    def __init__(self, address: Address) -> None:
        self._address = address
        self._reader: asyncio.StreamReader | None = None
        self._writer: asyncio.StreamWriter | None = None
        self._asked = 0.0

    async def ask(self, request: Message) -> Message:
        """Pass a request on and return the reply.

        Raises:
            OSError, EOFError, ValueError, asyncio.LimitOverrunError: There is none.
        """
        now = asyncio.get_running_loop().time()
        if self._reader is not None and (self._reader.at_eof() or now - self._asked > _IDLE_SECONDS):
            self.close()
        # Not when the reply is read: a busy machine may read it long after the server began to wait.
        self._asked = now
        if self._reader is None or self._writer is None:
            self._reader, self._writer = await self._address.connect()
        head = redirected_to(request.head, self._address.host, self._address.prefix)
        self._writer.write(head + request.body)
        await self._writer.drain()
        reply = await read_reply(self._reader, request.method)
        if reply.closes or request.closes or reply.status >= HTTPStatus.INTERNAL_SERVER_ERROR:
            self.close()  # after an error of its own a server closes it without a word
        return reply

    def close(self) -> None:
        if self._writer is not None:
            self._writer.transport.abort()
        self._reader = self._writer = None


class Forwarder:
    """Serves the connections of clients, each in its own task.

    Args:
        address: The server.
        faults: The faults to inject.

    Attributes:
        journal: Which environments were made.
        unplanned: How many calls the server did not answer.
    """

    def __init__(self, address: Address, faults: Faults) -> None:
        self.journal = Journal()
        self.unplanned = 0
        self._address = address
        self._faults = faults
        self._clients: dict[asyncio.Task[None], asyncio.StreamWriter] = {}

    def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve a connection from now on."""
        task = asyncio.get_running_loop().create_task(self._serve(reader, writer))
        self._clients[task] = writer
        task.add_done_callback(self._clients.pop)

    def drop_all(self) -> None:
        """End all connections at once, as they end when a server dies."""
        for writer in self._clients.values():
            writer.transport.abort()

    async def stop(self) -> None:
        """End all connections, and wait until nothing is under way."""
        tasks = list(self._clients)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        line = _Line(self._address)
        try:
            with contextlib.suppress(*_BROKEN):
                while (request := await read_request(reader)) is not None:
                    if not await self._answer(request, line, reader, writer):
                        break
            if not writer.transport.is_closing():
                writer.close()
                with contextlib.suppress(*_BROKEN):
                    await writer.wait_closed()  # what was written gets there
        finally:
            line.close()
            writer.transport.abort()

    async def _answer(
        self, request: Message, line: _Line, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> bool:
        """Answer a request, or fail to; return whether the connection goes on."""
        kind = self._faults.draw(stage_of(request.path))
        reply, made = _ERROR, None
        if kind is None or kind in ARRIVES:
            try:
                reply, made = await self._pass_on(request, line)
            except _BROKEN:
                self.unplanned += 1
                self._faults.take_back(kind)
                return False
        elif stage_of(request.path) == "close":
            self.journal.note_asked(request.path, request.content)
        if kind in ("reset", "lost"):
            _reset(writer)
            return False
        if kind == "silent" or (kind == "delay" and await _gone(reader, self._faults.delay)):
            await _gone(reader, None)
            return False
        if kind == "garble":
            reply, made = _PAGE, None
        if kind == "truncate":
            writer.write(_cut(reply))
            return False
        if reader.at_eof():
            return False  # nobody listens any more
        writer.write(reply.head + reply.body)
        await writer.drain()
        if made is not None:
            made.told = True
        return not (request.closes or reply.closes)

    async def _pass_on(self, request: Message, line: _Line) -> tuple[Message, Created | None]:
        """Have the server answer, and note it; return what was created, too.

        Raises:
            OSError, EOFError, ValueError, asyncio.LimitOverrunError: It does not answer.
        """
        stage, path, made = stage_of(request.path), request.path, None
        closing = self.journal.note_asked(path, request.content) if stage == "close" else None
        reply = await line.ask(request)
        if reply.status == HTTPStatus.OK:
            if stage == "create":
                made = self.journal.note_created(path, reply.content)
            if closing is not None:
                closing.closed = True
        return reply, made


def _message(status: str, kind: str, body: bytes) -> Message:
    head = f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n\r\n"
    return Message(head.encode("ascii"), body, body)


_ERROR = _message("500 Internal Server Error", "text/plain; charset=utf-8", ERROR)
_PAGE = _message("200 OK", "text/html; charset=utf-8", PAGE)


def _cut(reply: Message) -> bytes:
    """Return the first half of the body with what comes before it, or of the head where there is no body."""
    if not reply.body:
        return reply.head[: len(reply.head) // 2]
    return reply.head + reply.body[: len(reply.body) // 2]


def _reset(writer: asyncio.StreamWriter) -> None:
    connection = writer.get_extra_info("socket")
    if connection is not None:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
    writer.transport.abort()


async def _gone(reader: asyncio.StreamReader, seconds: float | None) -> bool:
    """Wait for a client to give up; return whether it did within some seconds.

    One that says something more before it was answered counts as gone: no client of these servers does.
    """
    with contextlib.suppress(asyncio.TimeoutError, OSError):
        await asyncio.wait_for(reader.read(1), seconds)
        return True
    return reader.at_eof() or reader.exception() is not None
