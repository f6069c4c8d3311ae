"""The tabs of one episode: carries out actions and reads the page that is shown."""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from playwright.async_api import Error

from agentgym_servers._browser.boxes import client_boxes
from agentgym_servers._browser.chromium import answers
from agentgym_servers._browser.tree import (
    Element,
    Numbers,
    PageText,
    detailed_text,
    nodes_with_line,
    page_text,
)

if TYPE_CHECKING:
    from playwright.async_api import BrowserContext, CDPSession, Page

    from agentgym_servers._browser.actions import BrowserAction

__all__ = ["ActionFailed", "TabPage", "Tabs"]

_SHARES = (0.5, 0.25, 0.75, 0.1, 0.9)
"""Where an element may be clicked, as shares of its width and height; the middle first."""

_UNCOVERED = """function(points) {
    const own = this.nodeType === Node.TEXT_NODE ? this.parentNode : this;
    const hit = ([x, y]) => own.contains(own.getRootNode().elementFromPoint(x, y));
    return Math.max(0, points.findIndex(hit));
}"""

_SCROLL = """(sign) => {
    const page = document.scrollingElement || document.body;
    page.scrollTop += sign * window.innerHeight;
}"""
_NEXT_TURN = "new Promise(done => setTimeout(done, 10))"  # after what the action itself has started
_LOAD_SECONDS = 15.0
_KEYS_TYPED = 200  # a longer text is put in at once, without an event for each key
_TRIES = 3  # of reading a page that navigates meanwhile


class ActionFailed(Exception):
    """An action could not be carried out; the page is as it was."""


@dataclass(frozen=True)
class TabPage:
    """The current tab.

    Attributes:
        text: The titles of the tabs, and the page as text.
        page: The page as text, with its elements.
        url: Its address.
        content: Its HTML.
    """

    text: str
    page: PageText
    url: str
    content: str


@dataclass
class _Watch:
    """Whether a page is loading."""

    session: CDPSession
    loading: bool = False
    loaded: asyncio.Event = field(default_factory=asyncio.Event)

    def begin(self, _event: Any) -> None:
        """Note that a page is requested."""
        self.loading = True
        self.loaded.clear()

    def end(self, _event: Any) -> None:
        """Note that it is there."""
        self.loading = False
        self.loaded.set()


class Tabs:
    """The tabs of one context.

    Args:
        context: The context; closing it ends the tabs.
        settle_seconds: How long `rest` waits for pages that change later by scripts. If it is above 0, an
            action waits for this time only, whether or not a page is still loading.
        detailed: Whether the text of a page is by `detailed_text`, not by `page_text`.
    """

    def __init__(
        self, context: BrowserContext, settle_seconds: float = 0.0, *, detailed: bool = False
    ) -> None:
        self.context = context
        self._settle_seconds = settle_seconds
        self._detailed = detailed
        self._watches: dict[Page, _Watch] = {}
        self._numbers: dict[Page, Numbers] = {}
        self._last_number = 0
        self.page: Page | None = None
        self._seen: TabPage | None = None
        # Otherwise a call on a page that has crashed would wait for its time limit.
        context.on("page", lambda page: page.on("crash", self._end))

    @property
    def shown(self) -> Page:
        """The page of the current tab.

        Raises:
            ActionFailed: No tab was opened yet.
        """
        if self.page is None:
            raise ActionFailed("no tab is open")
        return self.page

    async def open(self, url: str) -> None:
        """Open an address in a new tab, which becomes the current one."""
        self.page = await self.context.new_page()
        if url:
            await self.visit(url)

    async def ended(self) -> bool:
        """Return whether the current page no longer responds: it was closed, or the browser has ended."""
        browser = self.context.browser
        return self.shown.is_closed() or (browser is not None and not await answers(browser))

    async def visit(self, url: str) -> int:
        """Open an address in the current tab.

        Returns:
            The HTTP status of the page; 0 if it came without one.

        Raises:
            ActionFailed: It is not an address of the web, or there is no answer.
        """
        if not url.startswith(("http://", "https://")):
            raise ActionFailed(f"Invalid URL {url!r:.200}: an address begins with http://")
        try:
            response = await self.shown.goto(url)
        except Error as error:
            raise ActionFailed(
                f"Failed to load the page: {url:.200} ({error.message.splitlines()[0]})"
            ) from error
        return 0 if response is None else response.status

    async def act(self, command: BrowserAction) -> None:
        """Carry out an action, and wait until the page is loaded.

        Raises:
            ActionFailed: It could not be carried out.
        """
        try:
            await self._act(command)
        except Error as error:
            raise ActionFailed(error.message.splitlines()[0]) from error
        await self._settle()

    async def _act(self, command: BrowserAction) -> None:
        page = self.shown
        watch = await self._watch(page)
        watch.loaded.clear()
        verb, text = command.verb, command.text
        if verb in {"click", "hover", "type"}:
            await self._point(page, command)
        elif verb == "press":
            await page.keyboard.press(text.replace("Meta", "Control"))
        elif verb == "scroll":
            await page.evaluate(_SCROLL, -1 if text == "up" else 1)
        elif verb == "goto":
            await self.visit(text)
        elif verb == "go_back":
            await page.go_back()
        elif verb == "go_forward":
            await page.go_forward()
        else:
            await self._change_tab(verb, text)

    async def _point(self, page: Page, command: BrowserAction) -> None:
        element = self._seen.page.elements.get(command.element) if self._seen else None
        if element is None:
            raise ActionFailed(repr(command.element))
        x, y = await self._place(page, element) if self._detailed else element.center
        if command.verb == "hover":
            await page.mouse.move(x, y)
            return
        await page.mouse.click(x, y)
        if command.verb == "type":
            if len(command.text) <= _KEYS_TYPED:
                await page.keyboard.type(command.text)
            else:
                await page.keyboard.insert_text(command.text)
            if command.enter:
                await page.keyboard.press("Enter")

    async def _place(self, page: Page, element: Element) -> tuple[float, float]:
        """Scroll to an element, also inside a part of the page, and return a point where nothing covers it.

        If possible, it is the middle of the first line.
        """
        node = {"backendNodeId": element.node}
        send = (await self._watch(page)).session.send
        await send("DOM.scrollIntoViewIfNeeded", node)
        quads = (await send("DOM.getContentQuads", node))["quads"]
        if not quads:
            raise ActionFailed(f"{element.text} is not visible")
        left, top, _, _, right, bottom, *_ = map(float, quads[0])
        points = [(left + (right - left) * x, top + (bottom - top) * y) for x in _SHARES for y in _SHARES]
        found = (await send("DOM.resolveNode", node))["object"]["objectId"]
        called = {"functionDeclaration": _UNCOVERED, "arguments": [{"value": points}], "returnByValue": True}
        place = await send("Runtime.callFunctionOn", {"objectId": found, **called})
        index: int = place["result"].get("value", 0)  # none if the page has removed the element meanwhile
        return points[index]

    async def _change_tab(self, verb: str, text: str) -> None:
        pages = self.context.pages
        if verb == "new_tab":
            self.page = await self.context.new_page()
        elif verb == "tab_focus":
            if int(text) >= len(pages):
                raise ActionFailed("list index out of range")
            self.page = pages[int(text)]
            await self.page.bring_to_front()
        elif verb == "close_tab":
            await self.shown.close()
            self._watches.pop(self.shown, None)
            self._numbers.pop(self.shown, None)
            pages = self.context.pages
            self.page = pages[-1] if pages else await self.context.new_page()

    async def _watch(self, page: Page) -> _Watch:
        """Return the watch of a page, whose session also reads the page."""
        if page not in self._watches:
            session = await self.context.new_cdp_session(page)
            watch = self._watches[page] = _Watch(session)
            begins = ("frameRequestedNavigation", "frameScheduledNavigation", "frameStartedLoading")
            for event in begins:
                session.on(f"Page.{event}", watch.begin)
            session.on("Page.frameStoppedLoading", watch.end)
            await asyncio.gather(session.send("Accessibility.enable"), session.send("Page.enable"))
        return self._watches[page]

    async def _settle(self) -> None:
        """Wait for the settle time, or until the page has loaded what an action requested."""
        if self._settle_seconds:
            await self.rest()
            return
        watch = await self._watch(self.shown)
        for _ in range(_TRIES):
            with contextlib.suppress(Error):  # the page was replaced meanwhile
                await watch.session.send("Runtime.evaluate", {"expression": _NEXT_TURN, "awaitPromise": True})
            if not watch.loading:
                break
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(watch.loaded.wait(), _LOAD_SECONDS)

    async def rest(self) -> None:
        """Wait for pages that change later by scripts."""
        if self._settle_seconds:
            await asyncio.sleep(self._settle_seconds)

    async def see(self) -> TabPage:
        """Read the current tab.

        Raises:
            Error: The page cannot be read.
        """
        for _ in range(_TRIES - 1):
            try:
                return await self._see()
            except (Error, KeyError, IndexError):  # it was replaced while it was read
                await self._settle()
        return await self._see()

    async def _see(self) -> TabPage:
        page, pages = self.shown, self.context.pages
        watch = await self._watch(page)
        send = watch.session.send
        titles, content, frames, tree, snapshot = await asyncio.gather(
            asyncio.gather(*(each.title() for each in pages)),
            page.content(),
            send("Page.getFrameTree"),
            send("Accessibility.getFullAXTree"),
            send("DOMSnapshot.captureSnapshot", {"computedStyles": [], "includeDOMRects": False}),
        )
        nodes = tree["nodes"]
        numbers = self._numbers.setdefault(page, Numbers())
        numbers.last = self._last_number
        numbers.enter(frames["frameTree"]["frame"]["loaderId"])
        if self._detailed:
            shown = detailed_text(nodes, snapshot, numbers)
        else:
            boxes = await client_boxes(send, snapshot, nodes_with_line(nodes))
            shown = page_text(nodes, boxes, numbers)
        self._last_number = numbers.last
        names = [f"Tab {n}{' (current)' * (pages[n] is page)}: {title}" for n, title in enumerate(titles)]
        self._seen = TabPage(f"{' | '.join(names)}\n\n{shown.text}", shown, page.url, content)
        return self._seen

    async def picture(self) -> bytes:
        """Return a picture of the current tab, as PNG."""
        return await self.shown.screenshot()

    async def _end(self, _crashed: Page) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the context, with its tabs, cookies and storage."""
        with contextlib.suppress(Error):
            await self.context.close()
