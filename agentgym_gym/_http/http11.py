"""HTTP/1.1 without I/O, for the asynchronous driver: the bytes of a request, and the reading of a reply."""

from __future__ import annotations

import zlib
from functools import lru_cache
from http import HTTPStatus
from typing import NamedTuple

import httptools
import httpx

from agentgym_gym._http import limits
from agentgym_gym._http.sync_driver import HEADERS, redirected
from agentgym_gym._http.transport import authorization
from agentgym_gym.calls import Call, Reply
from agentgym_gym.errors import BadOption, BadReply, ConnectionLost

__all__ = ["Origin", "ResponseParser", "origin_of", "request_of"]

_WBITS = {"gzip": 31, "x-gzip": 31, "deflate": 15}  # how zlib is told of an encoding


class Origin(NamedTuple):
    """What the base URL of a server comes to.

    Attributes:
        host: Its name or address, as it is looked up.
        port: Its port.
        tls: Whether it is spoken to under TLS.
        path: What every path begins with.
        headers: The headers that every request to it has.
    """

    host: str
    port: int
    tls: bool
    path: str
    headers: str


@lru_cache(maxsize=256)
def origin_of(server: str) -> Origin:
    """Read a base URL; a user name and password in it go into a header.

    Raises:
        BadOption: It is not the URL of a server.
    """
    try:
        url = httpx.URL(server)
    except httpx.InvalidURL as error:
        raise BadOption(f"a server's URL cannot be used: {error}") from None
    headers = {"Host": url.netloc.decode("ascii"), **HEADERS, **authorization(server)}
    return Origin(
        host=url.raw_host.decode("ascii"),
        port=url.port or (443 if url.scheme == "https" else 80),
        tls=url.scheme == "https",
        path=url.raw_path.decode("ascii").rstrip("/"),
        headers="".join(f"{name}: {value}\r\n" for name, value in headers.items()),
    )


def request_of(call: Call) -> bytes:
    """Return the bytes of a request.

    Raises:
        BadOption: Its path is not one that can be asked for.
    """
    origin, content = origin_of(call.server), call.content
    target = call.target
    if not (target.isascii() and target.isprintable()) or " " in target:
        raise BadOption(f"{call} is not a request that can be made")
    size = f"Content-Length: {len(content)}\r\n" if content is not None else ""
    head = f"{call.method} {origin.path}{target} HTTP/1.1\r\n{origin.headers}{size}\r\n"
    return head.encode("ascii") + (content or b"")


class ResponseParser:
    """The reply to one call, as far as it has come.

    Args:
        call: The call.

    Attributes:
        complete: Whether all of it is there.
        last: Whether the connection must not be used again.
    """

    def __init__(self, call: Call) -> None:
        self.complete = False
        self.last = False
        self._call = call
        self._parser = httptools.HttpResponseParser(self)
        self._status = 0
        self._headers: dict[bytes, bytes] = {}
        self._body: list[bytes] = []
        self._size = 0

    def feed(self, data: bytes) -> None:
        """Read what has come.

        Raises:
            ConnectionLost: It is not HTTP.
            BadReply: There is too much of it.
        """
        self._size += len(data)
        limits.check_size(self._call, self._size)
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            self.last = True  # after a complete reply, it is the surplus that cannot be read
            if not self.complete:
                raise ConnectionLost(f"{self._call} was answered in what is not HTTP: {error}") from error

    def end(self) -> None:
        """Take note that no more will come, which ends a reply that did not tell its length."""
        self.last = True
        if self._status and not self._headers.keys() & {b"content-length", b"transfer-encoding"}:
            self.complete = True

    def reply(self) -> Reply:
        """Return the reply, once it is complete.

        Raises:
            BadReply: It leads elsewhere, or is encoded in a way that cannot be read.
        """
        del self._parser  # the two hold each other, and there may be thousands a second
        if HTTPStatus.MULTIPLE_CHOICES <= self._status < HTTPStatus.BAD_REQUEST:
            location = self._headers.get(b"location")
            raise redirected(self._call, location.decode("latin-1") if location is not None else None)
        return Reply(self._call, self._status, self._decoded(b"".join(self._body)))

    def _decoded(self, content: bytes) -> bytes:
        """Undo an encoding that nobody asked for, if there is one."""
        encoding = self._headers.get(b"content-encoding", b"identity").decode("latin-1").strip().lower()
        if encoding == "identity" or not content:
            return content
        if encoding not in _WBITS:
            raise BadReply(f"{self._call} answered in an encoding that cannot be read: {encoding!r}")
        decoder = zlib.decompressobj(_WBITS[encoding])
        try:
            decoded = decoder.decompress(content, limits.MAX_REPLY_BYTES + 1)
        except zlib.error as error:
            raise BadReply(f"{self._call} answered in an encoding that cannot be read: {error}") from error
        limits.check_size(self._call, len(decoded))
        if not decoder.eof:
            raise BadReply(f"{self._call} answered in an encoding that cannot be read: it ends too early")
        return decoded

    # What the parser calls.

    def on_message_begin(self) -> None:
        """Take note of what comes after the reply."""
        self.last = self.last or self.complete

    def on_header(self, name: bytes, value: bytes) -> None:
        """Keep a header."""
        self._headers[name.lower()] = value

    def on_headers_complete(self) -> None:
        """Keep the status."""
        if not self.complete:
            self._status = self._parser.get_status_code()

    def on_body(self, body: bytes) -> None:
        """Keep a part of the body."""
        if not self.complete:
            self._body.append(body)

    def on_message_complete(self) -> None:
        """Take note of the end, but for that of an interim reply."""
        if self._status < HTTPStatus.OK and not self.complete:
            self._status = 0
            self._headers.clear()
        elif not self.complete:
            self.complete = True
            self.last = self.last or not self._parser.should_keep_alive()
