"""HTTP/1.1 without I/O: serializes requests and parses replies, for both kinds of connection."""

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

    from agentgym_gym.calls import ServerConnection

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
"""Default headers of every request."""

Headers = tuple[tuple[str, str], ...]
"""Names and values of headers, in order."""

_WBITS = {"gzip": 31, "x-gzip": 31, "deflate": 15}  # `wbits` of zlib per encoding
_NOT_IN_A_HOST = frozenset(' "<>\\^`{|}')
_PATH = "/%:@!$&'()*+,;=~"  # characters that are not quoted in a path (RFC 3986, section 3.3)


class Origin(NamedTuple):
    """The parts of a server's base URL.

    Attributes:
        host: Its name or address, ready for look-up.
        port: Its port.
        tls: Whether connections to it use TLS.
        path: The prefix of every path.
        headers: The header lines of every request.
    """

    host: str
    port: int
    tls: bool
    path: str
    headers: str


@lru_cache(maxsize=256)
def origin_of(server: str, headers: Headers = ()) -> Origin:
    """Parse a base URL; a user name and password in it become a header.

    Args:
        server: The base URL.
        headers: The user's own headers; they replace default headers of the same name.

    Raises:
        BadOption: It is not a valid server URL.
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
    """Merge these lines, the default headers and the user's headers; the last of each name wins."""
    by_name = {name.lower(): (name, value) for name, value in (*lines.items(), *HEADERS.items(), *headers)}
    return dict(by_name.values())


def request_of(call: Call, headers: Headers = ()) -> bytes:
    """Return the bytes of a request.

    Args:
        call: The call.
        headers: The user's own headers.

    Raises:
        BadOption: Its path is not a valid request target.
    """
    origin, content = origin_of(call.server, headers), call.content
    target = call.target
    if not (target.isascii() and target.isprintable()) or " " in target:
        raise BadOption(f"{call} is not a request that can be made")
    size = f"Content-Length: {len(content)}\r\n" if content is not None else ""
    head = f"{call.method} {origin.path}{target} HTTP/1.1\r\n{origin.headers}{size}\r\n"
    return head.encode("latin-1") + (content or b"")


def redirected(call: Call, target: str | None) -> BadReply:
    """Return the fault for a redirect."""
    return BadReply(f"{call} ", f"was redirected to {shown(target or 'nowhere')}; redirects are not followed")


class ResponseParser:
    """Parses the reply to one call, incrementally.

    Args:
        call: The call.

    Attributes:
        complete: Whether the reply is complete.
        call: The call.
        last: Whether the connection must not be reused: the server closes it, or has sent too much.
        closing: Whether the server announced that it closes the connection.
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
        """The HTTP status; 0 until the head is complete."""
        return self._status

    def feed(self, data: bytes) -> None:
        """Parse received data.

        Raises:
            ConnectionLost: It is not HTTP.
            BadReply: The reply is too large.
        """
        self._size += len(data)
        limits.check_size(self.call, self._size)
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserCallbackError as error:
            raise (error.__context__ or error) from None  # Ctrl-C within one of the callbacks below
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            self.last = True  # after a complete reply, only the surplus is invalid
            if not self.complete:
                raise ConnectionLost(f"{self.call} got a reply that is not HTTP: {error}") from error

    def end(self) -> None:
        """Note the end of the stream, which completes a reply without a length."""
        self.last = self.closing = True
        if self._status and not self._headers.keys() & {"content-length", "transfer-encoding"}:
            self.complete = True

    def reply(self, connection: ServerConnection | None = None) -> Reply:
        """Return the reply, once it is complete. May be called again, for example after Ctrl-C.

        Args:
            connection: Its connection.

        Raises:
            BadReply: It is a redirect, or has an unsupported encoding.
        """
        self.__dict__.pop("_parser", None)  # a reference cycle, and there may be thousands a second
        if HTTPStatus.MULTIPLE_CHOICES <= self._status < HTTPStatus.BAD_REQUEST:
            raise redirected(self.call, self._headers.get("location"))
        # After an internal error, servers of this kind close the connection without announcing it.
        self.last = self.last or self._status >= HTTPStatus.INTERNAL_SERVER_ERROR
        content = self._body[0] if len(self._body) == 1 else b"".join(self._body)
        if "content-encoding" in self._headers and content:
            content = self._decoded(content)
        return Reply(self.call, self._status, content, self._headers, connection, self.closing)

    def _decoded(self, content: bytes) -> bytes:
        """Undo content encodings that the request did not accept, the last first."""
        for part in reversed(self._headers["content-encoding"].split(",")):
            encoding = part.strip().lower()
            if encoding not in {"identity", ""}:
                content = self._inflated(content, encoding)
        return content

    def _inflated(self, content: bytes, encoding: str) -> bytes:
        wrong = f"{self.call} answered in an encoding that cannot be read"
        if encoding not in _WBITS:
            raise BadReply(f"{wrong}: {encoding!r}")
        # Some servers send "deflate" without the zlib header, whose first byte contains the method, 8.
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

    # Callbacks of the parser.

    def on_message_begin(self) -> None:
        """Note data after the reply."""
        self.last = self.last or self.complete

    def on_header(self, name: bytes, value: bytes) -> None:
        """Store a header; values of the same name are joined."""
        if self.complete:
            return
        key, text = name.decode("latin-1").lower(), value.decode("latin-1")
        self._headers[key] = f"{self._headers[key]}, {text}" if key in self._headers else text

    def on_headers_complete(self) -> None:
        """Store the status."""
        if not self.complete:
            self._status = self._parser.get_status_code()

    def on_body(self, body: bytes) -> None:
        """Store a part of the body."""
        if not self.complete:
            self._body.append(body)

    def on_message_complete(self) -> None:
        """Note the end of the reply; an interim reply is discarded."""
        if self._status < HTTPStatus.OK and not self.complete:
            self._status = 0
            self._headers.clear()
        elif not self.complete:
            self.complete = True
            self.closing = not self._parser.should_keep_alive()
            self.last = self.last or self.closing


def _ascii(host: str) -> str:
    """Return a host in the form for look-up and requests: names beyond ASCII are encoded by IDNA 2008."""
    if host.isascii():
        if not host or not host.isprintable() or not _NOT_IN_A_HOST.isdisjoint(host):
            raise ValueError(f"{host!r} is not the name of a host")
        return host
    import idna  # noqa: PLC0415 - few names need it

    return idna.encode(host, uts46=True).decode("ascii")
