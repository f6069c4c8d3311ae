"""Opens pages of the package ``miniwob`` in the browser, which reaches nothing else."""

from __future__ import annotations

import importlib.util
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from agentgym_servers._browser.tabs import Tabs
from agentgym_servers._browser.turns import Turns

if TYPE_CHECKING:
    from playwright.async_api import BrowserContext, Route

    from agentgym_servers._browser.chromium import Chromium

__all__ = ["MiniWobBrowser"]

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


# Runs before the page's own scripts. The random numbers while a page loads, and the day that it takes for
# today, are the same in each process. No time passes between actions: delayed work is done at once, and
# repeated work (a blinking cursor, a countdown) never. The page has its own clipboard, because all contexts
# share the browser's.
_BEFORE = """(() => {
    let state = 1;
    Math.random = () => (state = (state * 16807) % 2147483647) / 2147483647;
    const Real = Date, offset = new Real(2016, 11, 15, 12).getTime() - Real.now();
    window.Date = class extends Real {
        constructor(...given) { given.length ? super(...given) : super(Real.now() + offset); }
        static now() { return Real.now() + offset; }
    };
    const later = window.setTimeout, hour = 3600000;
    window.setTimeout = (what, delay, ...given) => later(what, delay > hour ? delay : 0, ...given);
    window.setInterval = () => 0;
    window.nextFrame = () => new Promise(done => {
        requestAnimationFrame(() => requestAnimationFrame(done));
        later(done, 1000);  // a page that is not shown has no frames
    });
    let copied = "";
    const copy = event => { copied = String(getSelection()); event.preventDefault(); };
    const paste = event => { event.preventDefault(); document.execCommand("insertText", false, copied); };
    addEventListener("copy", copy, true);
    addEventListener("paste", paste, true);
})()"""


class MiniWobBrowser:
    """Opens the pages of tasks in the one browser of a server.

    Args:
        chromium: The browser.
    """

    def __init__(self, chromium: Chromium) -> None:
        self._chromium = chromium
        self.turns = Turns(chromium)

    async def open(self, name: str) -> Tabs:
        """Open the page of a task in its own context."""
        context = await self._chromium.context()
        tabs = Tabs(context, detailed=True)
        try:
            await _serve_files(context)
            await context.add_init_script(_BEFORE)
            await tabs.open(f"http://{_HOST}/miniwob/{name}.html")
        except BaseException:
            await tabs.close()
            raise
        return tabs


async def _serve_files(context: BrowserContext) -> None:
    """Answer each request of a context with a file of the package, and refuse all others."""
    await context.route("**/*", _answer)
    await context.set_offline(True)  # for requests that pass no route, such as web sockets


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
