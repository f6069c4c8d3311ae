"""Forward calls from clients to a server and inject faults: the proxy without its listener."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
from http import HTTPStatus
from urllib.parse import urlsplit

from agentgym_gym._addresses import parse_urls
from agentgym_gym._http.certificates import tls_context
from agentgym_gym._http.http11 import origin_of
from agentgym_gym._text import redact
from agentgym_gym.errors import BadOption
from agentgym_gym.testing._created_envs import Created, Journal
from agentgym_gym.testing._faults import ARRIVES, ERROR, PAGE, Faults, stage_of
from agentgym_gym.testing._http_messages import HttpMessage, read_reply, read_request, redirected_to

__all__ = ["MAX_HEAD_BYTES", "Address", "Forwarder"]

MAX_HEAD_BYTES = 1 << 20
"""The maximum size of a message head."""

_IDLE_SECONDS = 4.0  # reconnect after this idle time: uvicorn closes a connection after 5
_CONNECT_SECONDS = 5.0  # the server counts as down after this time
_RESET = struct.pack("ii", 1, 0)  # linger for 0 seconds: closing the socket resets the connection

_BROKEN = (OSError, EOFError, ValueError, asyncio.LimitOverrunError)
"""Errors of a broken connection, or of data that is not HTTP."""


class Address:
    """The address of a server.

    Args:
        server: Base URL of the server.

    Attributes:
        host: The value of the ``Host`` header.
        prefix: The path of the base URL.

    Raises:
        BadOption: The value is not a single URL without a user name.
    """

    def __init__(self, server: str) -> None:
        url, *more = parse_urls(server, "server")
        if more or "@" in url:
            raise BadOption("server", redact(server), "one URL, without a user name")
        origin = origin_of(url)
        self.host = urlsplit(url).netloc.encode("latin-1")
        self.prefix = origin.path.encode("latin-1")
        self._to = (origin.host, origin.port)
        self._context = tls_context() if origin.tls else None

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Open a connection.

        Raises:
            OSError: The server does not accept the connection, or not in time.
        """
        opening = asyncio.open_connection(*self._to, ssl=self._context, limit=MAX_HEAD_BYTES)
        try:
            return await asyncio.wait_for(opening, _CONNECT_SECONDS)
        except asyncio.TimeoutError as error:  # not an OSError before Python 3.11
            raise OSError("no connection in time") from error


class _Line:
    """The connection to the server for one client."""

    def __init__(self, address: Address) -> None:
        self._address = address
        self._reader: asyncio.StreamReader | None = None
        self._writer: asyncio.StreamWriter | None = None
        self._last_request = 0.0

    async def exchange(self, request: HttpMessage) -> HttpMessage:
        """Forward a request and return the reply.

        Raises:
            OSError, EOFError, ValueError, asyncio.LimitOverrunError: There is no valid reply.
        """
        now = asyncio.get_running_loop().time()
        if self._reader is not None and (self._reader.at_eof() or now - self._last_request > _IDLE_SECONDS):
            self.close()
        # Measured from the request: a busy machine may read the reply long after the server became idle.
        self._last_request = now
        if self._reader is None or self._writer is None:
            self._reader, self._writer = await self._address.connect()
        head = redirected_to(request.head, self._address.host, self._address.prefix)
        self._writer.write(head + request.body)
        await self._writer.drain()
        reply = await read_reply(self._reader, request.method)
        if reply.closes or request.closes or reply.status >= HTTPStatus.INTERNAL_SERVER_ERROR:
            self.close()  # after an internal error, a server closes without "Connection: close"
        return reply

    def close(self) -> None:
        if self._writer is not None:
            self._writer.transport.abort()
        self._reader = self._writer = None


class Forwarder:
    """Serves each client connection in its own task.

    Args:
        address: The server.
        faults: The faults to inject.

    Attributes:
        journal: The environments that the server created.
        unplanned: The number of calls that the server did not answer.
    """

    def __init__(self, address: Address, faults: Faults) -> None:
        self.journal = Journal()
        self.unplanned = 0
        self._address = address
        self._faults = faults
        self._clients: dict[asyncio.Task[None], asyncio.StreamWriter] = {}

    def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Start serving a connection."""
        task = asyncio.get_running_loop().create_task(self._serve(reader, writer))
        self._clients[task] = writer
        task.add_done_callback(self._clients.pop)

    def drop_all(self) -> None:
        """Abort all connections, as when the server dies."""
        for writer in self._clients.values():
            writer.transport.abort()

    async def stop(self) -> None:
        """Close all connections and wait for their tasks."""
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
                    await writer.wait_closed()  # flush pending data
        finally:
            line.close()
            writer.transport.abort()

    async def _answer(
        self, request: HttpMessage, line: _Line, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> bool:
        """Answer a request or inject a fault; return whether the connection stays open."""
        kind = self._faults.draw(stage_of(request.path))
        reply, made = _ERROR, None
        if kind is None or kind in ARRIVES:
            try:
                reply, made = await self._forward(request, line)
            except _BROKEN:
                self.unplanned += 1
                self._faults.take_back(kind)
                return False
        elif stage_of(request.path) == "close":
            self.journal.note_close_request(request.path, request.content)
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
            return False  # the client disconnected
        writer.write(reply.head + reply.body)
        await writer.drain()
        if made is not None:
            made.reply_sent = True
        return not (request.closes or reply.closes)

    async def _forward(self, request: HttpMessage, line: _Line) -> tuple[HttpMessage, Created | None]:
        """Forward a request and update the journal; return the reply and the environment it created, if any.

        Raises:
            OSError, EOFError, ValueError, asyncio.LimitOverrunError: The server does not answer.
        """
        stage, path, made = stage_of(request.path), request.path, None
        closing = self.journal.note_close_request(path, request.content) if stage == "close" else None
        reply = await line.exchange(request)
        if reply.status == HTTPStatus.OK:
            if stage == "create":
                made = self.journal.note_created(path, reply.content)
            if closing is not None:
                closing.closed = True
        return reply, made


def _message(status: str, kind: str, body: bytes) -> HttpMessage:
    head = f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n\r\n"
    return HttpMessage(head.encode("ascii"), body, body)


_ERROR = _message("500 Internal Server Error", "text/plain; charset=utf-8", ERROR)
_PAGE = _message("200 OK", "text/html; charset=utf-8", PAGE)


def _cut(reply: HttpMessage) -> bytes:
    """Return the head and half of the body, or half of the head if there is no body."""
    if not reply.body:
        return reply.head[: len(reply.head) // 2]
    return reply.head + reply.body[: len(reply.body) // 2]


def _reset(writer: asyncio.StreamWriter) -> None:
    connection = writer.get_extra_info("socket")
    if connection is not None:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
    writer.transport.abort()


async def _gone(reader: asyncio.StreamReader, seconds: float | None) -> bool:
    """Wait for a client to disconnect; return whether it did within the given seconds.

    A client that sends more data before the reply counts as disconnected: no AgentGym client does this.
    """
    with contextlib.suppress(asyncio.TimeoutError, OSError):
        await asyncio.wait_for(reader.read(1), seconds)
        return True
    return reader.at_eof() or reader.exception() is not None
