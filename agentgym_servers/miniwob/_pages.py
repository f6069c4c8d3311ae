"""Serves the files of the package ``miniwob`` to the browser, which reaches nothing else."""

from __future__ import annotations

import importlib.util
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

if TYPE_CHECKING:
    from playwright.async_api import BrowserContext, Route

__all__ = ["serve_pages", "url_of"]

_HOST = "miniwob.test"  # a name that exists in no network
_TYPES = {
    ".css": "text/css; charset=utf-8",
    ".gif": "image/gif",
    ".html": "text/html; charset=utf-8",
    ".jpg": "image/jpeg",
    ".js": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".png": "image/png",
}


def url_of(name: str) -> str:
    """Return the address of a task's page."""
    return f"http://{_HOST}/miniwob/{name}.html"


async def serve_pages(context: BrowserContext) -> None:
    """Answer each request of a context with a file of the package, and refuse all others."""
    await context.route("**/*", _answer)
    await context.set_offline(True)  # for those that pass no route, such as web sockets


async def _answer(route: Route) -> None:
    address = urlsplit(route.request.url)
    content = _read(unquote(address.path)) if address.netloc == _HOST else None
    if content is None:
        await route.abort()
    else:
        suffix = Path(address.path).suffix
        await route.fulfill(body=content, content_type=_TYPES.get(suffix, "application/octet-stream"))


@cache
def _root() -> Path:
    """Return the folder of the pages, without importing the package, which imports Selenium."""
    spec = importlib.util.find_spec("miniwob")
    folders = (spec.submodule_search_locations if spec is not None else None) or ()
    return next(Path(folder) / "html" for folder in folders).resolve()


@cache
def _read(path: str) -> bytes | None:
    file = (_root() / path.lstrip("/")).resolve()
    return file.read_bytes() if file.is_relative_to(_root()) and file.is_file() else None
