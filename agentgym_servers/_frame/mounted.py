"""Several servers in one process, each below a path of its own: ``http://127.0.0.1:8000/webshop``."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from fastapi.responses import JSONResponse

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from starlette.types import ASGIApp, Receive, Scope, Send

__all__ = ["Mounted"]


class Mounted:
    """An application that hands each request to the server whose name its path begins with.

    A server is built when it is first asked, since some take seconds to make their world. ``GET /`` lists
    the names.

    Args:
        makers: What builds each server, by its name.
    """

    def __init__(self, makers: Mapping[str, Callable[[], ASGIApp]]) -> None:
        self._makers = makers
        self._built: dict[str, ASGIApp] = {}
        self._building = {name: asyncio.Lock() for name in makers}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, as ASGI has it."""
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
