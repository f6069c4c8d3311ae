"""A wall around the browser: a SOCKS proxy on the loopback that connects to listed addresses only.

All requests of the browser pass it, also for the loopback, web sockets and those of scripts. The protocol is
version 5 of SOCKS, RFC 1928, without authentication.
"""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
from collections.abc import Iterable
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from playwright.async_api import ProxySettings

__all__ = ["Wall", "address_of"]

_VERSION, _CONNECT, _NO_AUTHENTICATION = 5, 1, 0
_IPV4, _NAME, _IPV6 = 1, 3, 4
_GRANTED, _NOT_ALLOWED, _UNREACHABLE = 0, 2, 4
_CHUNK = 65_536
_PORTS = {"http": 80, "https": 443}


def address_of(url: str) -> tuple[str, int]:
    """Return the host and the port of an address such as ``http://localhost:7770`` or ``example.org:80``.

    Raises:
        ValueError: It has no host, or its port is not a number.
    """
    parts = urlsplit(url if "://" in url else f"http://{url}")
    if not parts.hostname:
        raise ValueError(f"{url!r} has no host")
    return parts.hostname, parts.port or _PORTS.get(parts.scheme, 80)


class Wall:
    """The proxy of one server, in the running event loop.

    Args:
        allowed: The hosts and ports that the browser may reach.
    """

    def __init__(self, allowed: Iterable[tuple[str, int]]) -> None:
        self._allowed = frozenset(allowed)
        self._server: asyncio.Server | None = None

    async def start(self) -> ProxySettings:
        """Start listening, at the first call; return the settings of the browser."""
        if self._server is None:
            self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        host, port = self._server.sockets[0].getsockname()
        # By default, Chromium uses no proxy for addresses of the loopback and of the link.
        return {"server": f"socks5://{host}:{port}", "bypass": "<-loopback>"}

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, EOFError, ValueError), contextlib.closing(writer):
            address = await _requested(reader, writer)
            if address not in self._allowed:
                writer.write(_reply(_NOT_ALLOWED))
                return
            try:
                from_site, to_site = await asyncio.open_connection(*address)
            except OSError:
                writer.write(_reply(_UNREACHABLE))
                return
            writer.write(_reply(_GRANTED))
            with contextlib.closing(to_site):
                await asyncio.gather(_copy(reader, to_site), _copy(from_site, writer))


async def _requested(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> tuple[str, int]:
    """Return the host and the port that a client requests.

    Raises:
        ValueError: It is not a request of SOCKS 5 for a connection.
        EOFError: The client closed the connection.
    """
    version, methods = await reader.readexactly(2)
    await reader.readexactly(methods)
    writer.write(bytes([_VERSION, _NO_AUTHENTICATION]))
    request, command, _, kind = await reader.readexactly(4)
    if (version, request, command) != (_VERSION, _VERSION, _CONNECT):
        raise ValueError("not a request for a connection")
    if kind == _NAME:
        (length,) = await reader.readexactly(1)
        host = (await reader.readexactly(length)).decode("ascii").lower()
    elif kind in {_IPV4, _IPV6}:
        host = str(ipaddress.ip_address(await reader.readexactly(4 if kind == _IPV4 else 16)))
    else:
        raise ValueError("not an address")
    return host, int.from_bytes(await reader.readexactly(2), "big")


def _reply(code: int) -> bytes:
    return bytes([_VERSION, code, 0, _IPV4, 0, 0, 0, 0, 0, 0])


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Copy until either end closes."""
    try:
        while data := await reader.read(_CHUNK):
            writer.write(data)
            await writer.drain()
        writer.write_eof()
    except OSError:
        writer.close()
