"""Serves the sites to the browser: a proxy on the loopback that sends no request any further.

The browser sends every request to it, for any host. A header, which the context of the episode adds,
selects the state of the sites: each episode has its own.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import secrets
from http import HTTPStatus
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, urlsplit

from agentgym_servers.webarena._sites import SITES, host_of
from agentgym_servers.webarena._sites.web import Request, Response

if TYPE_CHECKING:
    from agentgym_servers.webarena._sites.state import State

__all__ = ["HEADER", "SiteServer"]

logger = logging.getLogger("agentgym_servers")

HEADER = "x-agentgym-episode"
"""The header with the token of an episode."""

_MOST_HEAD = 65_536
_MOST_BODY = 1_048_576


class SiteServer:
    """An HTTP server for the browser, in the running event loop."""

    def __init__(self) -> None:
        self._states: dict[str, State] = {}
        self._server: asyncio.Server | None = None
        self.by_host = {host_of(site.key): site for site in SITES}

    async def start(self) -> str:
        """Start listening; return the address."""
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, limit=_MOST_HEAD)
        host, port = self._server.sockets[0].getsockname()[:2]
        return f"http://{host}:{port}"

    def add(self, state: State) -> str:
        """Add the state of an episode; return its token."""
        token = secrets.token_hex(16)
        self._states[token] = state
        return token

    def remove(self, token: str) -> None:
        """Forget an episode."""
        self._states.pop(token, None)

    def close(self) -> None:
        """Stop listening."""
        if self._server is not None:
            self._server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # Cancelled when the server stops; asyncio would print a traceback for that.
        stops = (OSError, asyncio.IncompleteReadError, ValueError, asyncio.CancelledError)
        with contextlib.suppress(*stops):
            while await self._serve_one(reader, writer):
                pass
        writer.close()

    async def _serve_one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Answer one request; return whether the connection stays open."""
        try:
            head = await reader.readuntil(b"\r\n\r\n")
        except (asyncio.LimitOverrunError, asyncio.IncompleteReadError):
            return False
        first, *lines = head.decode("latin-1").split("\r\n")
        method, target, _ = first.split(" ", 2)
        headers = {}
        for line in filter(None, lines):
            name, _, value = line.partition(":")
            headers[name.lower()] = value.strip()
        length = int(headers.get("content-length", "0"))
        if length > _MOST_BODY:
            return False
        body = await reader.readexactly(length)
        response = self._answer(method, target, headers, body)
        _write(writer, response)
        await writer.drain()
        return method != "CONNECT"

    def _answer(self, method: str, target: str, headers: dict[str, str], body: bytes) -> Response:
        url = urlsplit(target)
        site = self.by_host.get(url.hostname or headers.get("host", "").partition(":")[0])
        state = self._states.get(headers.get(HEADER, ""))
        if site is None or state is None:
            return Response(
                "<title>No such site</title><p>There is no such site.</p>", HTTPStatus.BAD_GATEWAY
            )
        request = Request(
            method,
            host_of(site.key),
            url.path or "/",
            dict(parse_qsl(url.query, keep_blank_values=True)),
            dict(parse_qsl(body.decode("utf-8", "replace"), keep_blank_values=True)),
            _cookies(headers.get("cookie", "")),
        )
        try:
            return site.answer(state, request)
        except Exception:
            logger.exception("the site %s failed: %s %s", site.key, method, url.path)
            return Response("<title>Error</title><p>The site failed.</p>", HTTPStatus.INTERNAL_SERVER_ERROR)


def _cookies(header: str) -> dict[str, str]:
    pairs = (part.strip().partition("=") for part in header.split(";") if part.strip())
    return {name: value for name, _, value in pairs}


def _write(writer: asyncio.StreamWriter, response: Response) -> None:
    content = response.html.encode("utf-8", "replace")
    lines = [f"HTTP/1.1 {int(response.status)} {HTTPStatus(response.status).phrase}"]
    lines += ["Content-Type: text/html; charset=utf-8", f"Content-Length: {len(content)}"]
    lines += ["Cache-Control: no-store", "X-Content-Type-Options: nosniff"]
    # No header may hold a line end, which a form may contain.
    lines += [f"{name}: {value}".replace("\r", "").replace("\n", "") for name, value in response.headers]
    writer.write("\r\n".join([*lines, "", ""]).encode("latin-1", "replace") + content)
