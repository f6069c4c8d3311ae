"""HTTP/1.1 without I/O: the bytes of a request, and the reading of a reply, for both connections."""

from __future__ import annotations

import base64
import zlib
from functools import lru_cache
from http import HTTPStatus
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import quote, unquote, urlsplit

import httptools

from agentgym_gym._http import limits
from agentgym_gym._text import shown
from agentgym_gym.calls import Call, Reply
from agentgym_gym.errors import BadOption, BadReply, ConnectionLost

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = [
    "HEADERS",
    "Headers",
    "Origin",
    "ResponseParser",
    "joined",
    "origin_of",
    "redirected",
    "request_of",
]

HEADERS: Mapping[str, str] = {
    "Content-Type": "application/json",
    "Accept": "application/json",
    "Accept-Encoding": "identity",
}
"""What every request says."""

Headers = tuple[tuple[str, str], ...]
"""Names and values of headers, in order."""

_WBITS = {"gzip": 31, "x-gzip": 31, "deflate": 15}  # how zlib is told of an encoding
_NOT_IN_A_HOST = frozenset(' "<>\\^`{|}')
_PATH = "/%:@!$&'()*+,;=~"  # what stands in a path as it is (RFC 3986, section 3.3)


class Origin(NamedTuple):
    """What the base URL of a server comes to.

    Attributes:
        host: Its name or address, as it is looked up.
        port: Its port.
        tls: Whether it is spoken to under TLS.
        path: What every path begins with.
        headers: The lines of headers that every request to it has.
    """

    host: str
    port: int
    tls: bool
    path: str
    headers: str


@lru_cache(maxsize=256)
def origin_of(server: str, headers: Headers = ()) -> Origin:
    """Read a base URL; a user name and password in it go into a header.

    Args:
        server: The base URL.
        headers: The user's own headers; each takes the place of ours of the same name.

    Raises:
        BadOption: It is not the URL of a server.
    """
    try:
        url = urlsplit(server)
        host, port = _ascii(url.hostname or ""), url.port
    except ValueError as error:  # UnicodeError is one, too
        raise BadOption(f"a server's URL cannot be used: {error}") from None
    tls = url.scheme == "https"
    at = f"[{host}]" if ":" in host else host
    lines = {"Host": at if port is None else f"{at}:{port}"}
    if url.username is not None:
        user = f"{unquote(url.username)}:{unquote(url.password or '')}".encode()
        lines["Authorization"] = f"Basic {base64.b64encode(user).decode('ascii')}"
    return Origin(
        host=host,
        port=port or (443 if tls else 80),
        tls=tls,
        path=quote(url.path, safe=_PATH).rstrip("/"),
        headers="".join(f"{name}: {value}\r\n" for name, value in joined(lines, headers).items()),
    )


def joined(lines: Mapping[str, str], headers: Headers) -> dict[str, str]:
    """Return these headers, those of every request and the user's, of each name the last."""
    by_name = {name.lower(): (name, value) for name, value in (*lines.items(), *HEADERS.items(), *headers)}
    return dict(by_name.values())


def request_of(call: Call, headers: Headers = ()) -> bytes:
    """Return the bytes of a request.

    Args:
        call: The call.
        headers: The user's own headers.

    Raises:
        BadOption: Its path is not one that can be asked for.
    """
    origin, content = origin_of(call.server, headers), call.content
    target = call.target
    if not (target.isascii() and target.isprintable()) or " " in target:
        raise BadOption(f"{call} is not a request that can be made")
    size = f"Content-Length: {len(content)}\r\n" if content is not None else ""
    head = f"{call.method} {origin.path}{target} HTTP/1.1\r\n{origin.headers}{size}\r\n"
    return head.encode("latin-1") + (content or b"")


def redirected(call: Call, target: str | None) -> BadReply:
    """Return the fault of a server that sends us elsewhere."""
    return BadReply(f"{call} was redirected to {shown(target or 'nowhere')}; redirects are not followed")


class ResponseParser:
    """Reads the reply to one call, as it comes.

    Args:
        call: The call.

    Attributes:
        complete: Whether all of the reply is there.
        call: The call.
        last: Whether the connection must not be used again: the server closes it, or said too much.
        closing: Whether the server said that it closes the connection.
    """

    def __init__(self, call: Call) -> None:
        self.complete = False
        self.last = False
        self.closing = False
        self.call = call
        self._parser = httptools.HttpResponseParser(self)
        self._status = 0
        self._headers: dict[str, str] = {}
        self._body: list[bytes] = []
        self._size = 0

    @property
    def status(self) -> int:
        """The HTTP status; 0 before the whole head is there."""
        return self._status

    def feed(self, data: bytes) -> None:
        """Read what has come.

        Raises:
            ConnectionLost: It is not HTTP.
            BadReply: There is too much of it.
        """
        self._size += len(data)
        limits.check_size(self.call, self._size)
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserCallbackError as error:
            raise (error.__context__ or error) from None  # Ctrl-C within one of the methods below
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            self.last = True  # after a complete reply, it is the surplus that cannot be read
            if not self.complete:
                raise ConnectionLost(f"{self.call} was answered in what is not HTTP: {error}") from error

    def end(self) -> None:
        """Note that no more will come, which ends a reply that did not tell its length."""
        self.last = self.closing = True
        if self._status and not self._headers.keys() & {"content-length", "transfer-encoding"}:
            self.complete = True

    def reply(self, connection: int = 0) -> Reply:
        """Return the reply, once it is complete. May be called again, as after Ctrl-C.

        Args:
            connection: The number of the connection that it came on.

        Raises:
            BadReply: It leads elsewhere, or is encoded in a way that cannot be read.
        """
        self.__dict__.pop("_parser", None)  # the two hold each other, and there may be thousands a second
        if HTTPStatus.MULTIPLE_CHOICES <= self._status < HTTPStatus.BAD_REQUEST:
            raise redirected(self.call, self._headers.get("location"))
        # After an error of its own a server of this kind closes the connection without a word.
        self.last = self.last or self._status >= HTTPStatus.INTERNAL_SERVER_ERROR
        content = self._body[0] if len(self._body) == 1 else b"".join(self._body)
        if "content-encoding" in self._headers and content:
            content = self._decoded(content)
        return Reply(self.call, self._status, content, self._headers, connection, self.closing)

    def _decoded(self, content: bytes) -> bytes:
        """Undo the encodings that nobody asked for, the last first."""
        for part in reversed(self._headers["content-encoding"].split(",")):
            encoding = part.strip().lower()
            if encoding not in {"identity", ""}:
                content = self._inflated(content, encoding)
        return content

    def _inflated(self, content: bytes, encoding: str) -> bytes:
        wrong = f"{self.call} answered in an encoding that cannot be read"
        if encoding not in _WBITS:
            raise BadReply(f"{wrong}: {encoding!r}")
        # Some servers send "deflate" without the header of zlib, whose first byte tells the method, 8.
        bare = encoding == "deflate" and content[0] & 0x0F != zlib.DEFLATED
        decoder = zlib.decompressobj(-15 if bare else _WBITS[encoding])
        try:
            decoded = decoder.decompress(content, limits.MAX_REPLY_BYTES + 1)
        except zlib.error as error:
            raise BadReply(f"{wrong}: {error}") from error
        limits.check_size(self.call, len(decoded))
        if not decoder.eof:
            raise BadReply(f"{wrong}: it ends too early")
        return decoded

    # What the parser calls.

    def on_message_begin(self) -> None:
        """Note that something comes after the reply."""
        self.last = self.last or self.complete

    def on_header(self, name: bytes, value: bytes) -> None:
        """Keep a header; of several of one name, all values."""
        if self.complete:
            return
        key, said = name.decode("latin-1").lower(), value.decode("latin-1")
        self._headers[key] = f"{self._headers[key]}, {said}" if key in self._headers else said

    def on_headers_complete(self) -> None:
        """Keep the status."""
        if not self.complete:
            self._status = self._parser.get_status_code()

    def on_body(self, body: bytes) -> None:
        """Keep a part of the body."""
        if not self.complete:
            self._body.append(body)

    def on_message_complete(self) -> None:
        """Note the end, but for that of an interim reply."""
        if self._status < HTTPStatus.OK and not self.complete:
            self._status = 0
            self._headers.clear()
        elif not self.complete:
            self.complete = True
            self.closing = not self._parser.should_keep_alive()
            self.last = self.last or self.closing


def _ascii(host: str) -> str:
    """Return a host as it is looked up and named in requests: a name of other letters in IDNA 2008."""
    if host.isascii():
        if not host or not host.isprintable() or not _NOT_IN_A_HOST.isdisjoint(host):
            raise ValueError(f"{host!r} is not the name of a host")
        return host
    import idna  # noqa: PLC0415 - few names need it

    return idna.encode(host, uts46=True).decode("ascii")
