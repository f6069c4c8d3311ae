"""Refuses requests whose ``Host`` names another server.

A web page can make a browser send requests to a server on the user's own machine, under a host name that the
page's owner controls (DNS rebinding). Such a request has that name in its ``Host``.
"""

from __future__ import annotations

import ipaddress
import re
from typing import TYPE_CHECKING

from fastapi.responses import JSONResponse

if TYPE_CHECKING:
    from collections.abc import Iterable

    from starlette.types import ASGIApp, Receive, Scope, Send

__all__ = ["CheckHost", "is_loopback"]

_HOST = re.compile(r"(?:\[(?P<v6>[0-9A-Fa-f:.]+)\]|(?P<name>[^:/@\[\]\s]+))(?::[0-9]*)?")


class CheckHost:
    """An application that responds 421, misdirected request, unless it accepts ``Host``.

    It accepts loopback names and a list of others.

    Args:
        app: The application.
        allowed: Further host names or addresses, without ports, ignoring case.
    """

    def __init__(self, app: ASGIApp, allowed: Iterable[str] = ()) -> None:
        self._app = app
        self._allowed = {_normalized(name) for name in allowed}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request as an ASGI application."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        hosts = [value.decode("latin-1") for name, value in scope["headers"] if name == b"host"]
        if len(hosts) == 1 and self._accepts(hosts[0]):
            await self._app(scope, receive, send)
            return
        detail = (
            f"The Host {', '.join(hosts) or '(none)'!r:.100} is not a name of this server. Use a loopback "
            "address, or start the server with --allow-host NAME."
        )
        # The body is not read, so the connection cannot be used again.
        headers = {"connection": "close"}
        await JSONResponse({"detail": detail}, status_code=421, headers=headers)(scope, receive, send)

    def _accepts(self, host: str) -> bool:
        match = _HOST.fullmatch(host.strip())
        if match is None:
            return False
        name = _normalized(match["v6"] or match["name"])
        return is_loopback(name) or name in self._allowed


def is_loopback(host: str) -> bool:
    """Return whether a host without a port is a loopback one: 127.0.0.0/8, ::1 or localhost."""
    if _normalized(host) == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _normalized(name: str) -> str:
    return name.strip("[]").rstrip(".").lower()
