"""Read complete HTTP/1.1 messages from a stream and keep them byte for byte."""

from __future__ import annotations

import asyncio
import re
from http import HTTPStatus
from typing import NamedTuple

__all__ = ["HttpMessage", "read_reply", "read_request", "redirected_to"]

_LENGTH = re.compile(rb"\r\ncontent-length:[ \t]*(\d{1,18})[ \t]*\r\n", re.IGNORECASE)
_CHUNKED = re.compile(rb"\r\ntransfer-encoding:[^\r\n]*chunked[ \t]*\r\n", re.IGNORECASE)
_CLOSE = re.compile(rb"\r\nconnection:[^\r\n]*close", re.IGNORECASE)
_HOST = re.compile(rb"\r\nhost:[^\r\n]*", re.IGNORECASE)


class HttpMessage(NamedTuple):
    """A request or a reply.

    Attributes:
        head: The head up to and including the empty line, as received.
        body: The body, as received.
        content: The body after decoding chunks.
    """

    head: bytes
    body: bytes
    content: bytes

    @property
    def closes(self) -> bool:
        """Whether the connection closes after this message."""
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


async def read_request(reader: asyncio.StreamReader) -> HttpMessage | None:
    """Read a request; return None if the connection closed before it.

    Raises:
        asyncio.IncompleteReadError: The connection closed in the middle of the request.
        ValueError: The data is not an HTTP request.
    """
    head = await _head(reader)
    if not head:
        return None
    if head.partition(b"\r\n")[0].count(b" ") < 2:  # noqa: PLR2004 - method, path, version
        raise ValueError(f"not a request: {head[:80]!r}")
    body, content = await _body(reader, head)
    return HttpMessage(head, body, content)


async def read_reply(reader: asyncio.StreamReader, method: str) -> HttpMessage:
    """Read a reply.

    Args:
        reader: The stream to read from.
        method: The method of the request; a reply to HEAD has no body.

    Raises:
        asyncio.IncompleteReadError: The connection closed before the end of the reply.
        ValueError: The data is not an HTTP reply.
    """
    while True:
        head = await _head(reader)
        if not head:
            raise asyncio.IncompleteReadError(b"", None)
        status = _status(head)
        if status >= HTTPStatus.OK:
            break  # skip 1xx replies
    if method == "HEAD" or status in (HTTPStatus.NO_CONTENT, HTTPStatus.NOT_MODIFIED):
        return HttpMessage(head, b"", b"")
    if not _LENGTH.search(head) and not _CHUNKED.search(head):
        body = await reader.read()  # until EOF; a Content-Length header is added below
        return HttpMessage(head[:-2] + b"Content-Length: %d\r\n\r\n" % len(body), body, body)
    body, content = await _body(reader, head)
    return HttpMessage(head, body, content)


def redirected_to(head: bytes, host: bytes, prefix: bytes) -> bytes:
    """Return a request head with the Host header replaced and a prefix added to its path."""
    method, path, rest = head.split(b" ", 2)
    return _HOST.sub(b"\r\nHost: " + host, b" ".join([method, prefix + path, rest]), count=1)


async def _head(reader: asyncio.StreamReader) -> bytes:
    """Read up to the empty line; return nothing at EOF."""
    try:
        return await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError as error:
        if error.partial:
            raise
        return b""


async def _body(reader: asyncio.StreamReader, head: bytes) -> tuple[bytes, bytes]:
    """Read a body; return it as received, and with chunks decoded."""
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
    while came[-1] != b"\r\n":  # trailers may follow the last chunk
        came.append(await reader.readuntil(b"\r\n"))
    return b"".join(came), b"".join(content)


def _status(head: bytes) -> int:
    words = head.split(None, 2)
    if not words[0].startswith(b"HTTP/1.") or not words[1].isdigit():
        raise ValueError(f"not a reply: {head[:80]!r}")
    return int(words[1])
