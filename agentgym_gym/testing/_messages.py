"""HTTP/1.1 messages, read whole from a stream and kept as received."""

from __future__ import annotations

import asyncio
import re
from http import HTTPStatus
from typing import NamedTuple

__all__ = ["Message", "read_reply", "read_request", "redirected_to"]

_LENGTH = re.compile(rb"\r\ncontent-length:[ \t]*(\d{1,18})[ \t]*\r\n", re.IGNORECASE)
_CHUNKED = re.compile(rb"\r\ntransfer-encoding:[^\r\n]*chunked[ \t]*\r\n", re.IGNORECASE)
_CLOSE = re.compile(rb"\r\nconnection:[^\r\n]*close", re.IGNORECASE)
_HOST = re.compile(rb"\r\nhost:[^\r\n]*", re.IGNORECASE)


class Message(NamedTuple):
    """A request or a reply.

    Attributes:
        head: Everything up to the empty line, as it came.
        body: What stands behind it, as it came.
        content: The body without the marks of its chunks.
    """

    head: bytes
    body: bytes
    content: bytes

    @property
    def closes(self) -> bool:
        """Whether the connection ends with it."""
        return b"HTTP/1.0" in self.head.partition(b"\r\n")[0] or _CLOSE.search(self.head) is not None

    @property
    def method(self) -> str:
        """The method of a request."""
        return self.head.partition(b" ")[0].decode("latin-1")

    @property
    def path(self) -> str:
        """The path of a request, with its query."""
        return self.head.split(b" ", 2)[1].decode("latin-1")

    @property
    def status(self) -> int:
        """The status of a reply."""
        return _status(self.head)


async def read_request(reader: asyncio.StreamReader) -> Message | None:
    """Read a request; None where the connection has ended before it began.

    Raises:
        asyncio.IncompleteReadError: It ended within the request.
        ValueError: It is no request.
    """
    head = await _head(reader)
    if not head:
        return None
    if head.partition(b"\r\n")[0].count(b" ") < 2:  # noqa: PLR2004 - method, path, version
        raise ValueError(f"not a request: {head[:80]!r}")
    body, content = await _body(reader, head)
    return Message(head, body, content)


async def read_reply(reader: asyncio.StreamReader, method: str) -> Message:
    """Read a reply.

    Args:
        reader: Where it comes from.
        method: The method of the request; a reply to HEAD has no body.

    Raises:
        asyncio.IncompleteReadError: The connection ended within the reply.
        ValueError: It is no reply.
    """
    while True:
        head = await _head(reader)
        if not head:
            raise asyncio.IncompleteReadError(b"", None)
        status = _status(head)
        if status >= HTTPStatus.OK:
            break  # what comes before is word that the reply is under way
    if method == "HEAD" or status in (HTTPStatus.NO_CONTENT, HTTPStatus.NOT_MODIFIED):
        return Message(head, b"", b"")
    if not _LENGTH.search(head) and not _CHUNKED.search(head):
        body = await reader.read()  # to the end of the connection; from here on it says how long it is
        return Message(head[:-2] + b"Content-Length: %d\r\n\r\n" % len(body), body, body)
    body, content = await _body(reader, head)
    return Message(head, body, content)


def redirected_to(head: bytes, host: bytes, prefix: bytes) -> bytes:
    """Return the head of a request as it is sent to another host, below a path there."""
    method, path, rest = head.split(b" ", 2)
    return _HOST.sub(b"\r\nHost: " + host, b" ".join([method, prefix + path, rest]), count=1)


async def _head(reader: asyncio.StreamReader) -> bytes:
    """Read up to the empty line; nothing where there is nothing."""
    try:
        return await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError as error:
        if error.partial:
            raise
        return b""


async def _body(reader: asyncio.StreamReader, head: bytes) -> tuple[bytes, bytes]:
    """Read a body; return it as it came, and without the marks of its chunks."""
    if not _CHUNKED.search(head):
        length = _LENGTH.search(head)
        body = await reader.readexactly(int(length[1])) if length else b""
        return body, body
    came, content = [], []
    while True:
        line = await reader.readuntil(b"\r\n")
        came.append(line)
        size = int(line.partition(b";")[0], 16)
        if not size:
            break
        came.append(await reader.readexactly(size + 2))
        content.append(came[-1][:-2])
    while came[-1] != b"\r\n":  # what may be said behind the last chunk
        came.append(await reader.readuntil(b"\r\n"))
    return b"".join(came), b"".join(content)


def _status(head: bytes) -> int:
    words = head.split(None, 2)
    if not words[0].startswith(b"HTTP/1.") or not words[1].isdigit():
        raise ValueError(f"not a reply: {head[:80]!r}")
    return int(words[1])
