"""Serves the sites to the browser: a proxy on the loopback that forwards no request.

The browser sends every request to it, for any host. A header, which the context of the episode adds,
selects the state of the sites: each episode has its own.
"""

from __future__ import annotations

import asyncio
import secrets
from typing import TYPE_CHECKING

from starlette.datastructures import Headers
from starlette.responses import HTMLResponse
from uvicorn import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

from agentgym_servers.webarena._sites import SITES, host_of

if TYPE_CHECKING:
    from playwright.async_api import ProxySettings
    from starlette.types import Receive, Scope, Send

    from agentgym_servers.webarena._sites.state import SiteState

__all__ = ["HEADER", "SiteServer"]

HEADER = "x-agentgym-episode"
"""The header with the token of an episode."""

_KEEP_ALIVE_SECONDS = 86_400  # the browser closes its connections
_NO_SITE = HTMLResponse("<title>No such site</title><p>There is no such site.</p>", 502)


class SiteServer:
    """An HTTP server for the browser, in the running event loop."""

    def __init__(self) -> None:
        self._states: dict[str, SiteState] = {}
        self._sites = {host_of(site.key): site for site in SITES}
        self._server: asyncio.Server | None = None

    async def start(self) -> ProxySettings:
        """Start listening, at the first call; return the settings of the browser."""
        if self._server is None:
            self._server = await self._listen()
        host, port = self._server.sockets[0].getsockname()
        return {"server": f"http://{host}:{port}"}

    async def _listen(self) -> asyncio.Server:
        # Not `uvicorn.Server`, which would take over the signals of the server that contains this one.
        config = Config(
            self.app,
            interface="asgi3",
            ws="none",
            log_config=None,
            access_log=False,
            proxy_headers=False,
            server_header=False,
            headers=[("Cache-Control", "no-store"), ("X-Content-Type-Options", "nosniff")],
            timeout_keep_alive=_KEEP_ALIVE_SECONDS,
        )
        config.load()
        shared = ServerState()
        shared.default_headers = config.encoded_headers
        loop = asyncio.get_running_loop()
        return await loop.create_server(lambda: _Connection(config, shared, {}), "127.0.0.1", 0)

    def add(self, state: SiteState) -> str:
        """Add the state of an episode; return its token."""
        token = secrets.token_hex(16)
        self._states[token] = state
        return token

    def remove(self, token: str) -> None:
        """Forget an episode."""
        self._states.pop(token, None)

    async def app(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request: the ASGI application."""
        headers = Headers(scope=scope)
        site = self._sites.get(headers.get("host", "").partition(":")[0])
        state = self._states.get(headers.get(HEADER, ""))
        answer = _NO_SITE if site is None or state is None else site.app(state)
        await answer(scope, receive, send)


class _Connection(HttpToolsProtocol):
    """A connection of the browser, without tunnels, which it requests for each address with HTTPS."""

    def data_received(self, data: bytes) -> None:
        if data.startswith(b"CONNECT "):
            self.transport.write(b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n")
            self.transport.close()
        else:
            super().data_received(data)
