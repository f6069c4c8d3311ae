"""Several servers in one process, each under its own path: ``http://127.0.0.1:8000/webshop``."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from fastapi.responses import JSONResponse

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from starlette.types import ASGIApp, Receive, Scope, Send

__all__ = ["Mounted"]


class Mounted:
    """An application that forwards each request to the server named by the first part of the path.

    A server is built on its first request, because some take seconds to generate their world. ``GET /`` lists
    the names.

    Args:
        makers: Functions that build the servers, by name.
    """

    def __init__(self, makers: Mapping[str, Callable[[], ASGIApp]]) -> None:
        self._makers = makers
        self._built: dict[str, ASGIApp] = {}
        self._building = {name: asyncio.Lock() for name in makers}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request as an ASGI application."""
        if scope["type"] != "http":
            return
        before = scope.get("root_path", "")
        name, _, _ = scope["path"].removeprefix(before).lstrip("/").partition("/")
        if not name:
            await JSONResponse({"servers": list(self._makers)})(scope, receive, send)
        elif name not in self._makers:
            detail = f"There is no server {name!r:.80} here; there is: {', '.join(self._makers)}."
            await JSONResponse({"detail": detail}, status_code=404)(scope, receive, send)
        else:
            app = await self._app(name)
            await app({**scope, "root_path": f"{before}/{name}"}, receive, send)

    async def _app(self, name: str) -> ASGIApp:
        async with self._building[name]:
            if name not in self._built:
                self._built[name] = await asyncio.to_thread(self._makers[name])
        return self._built[name]
