"""Starts one Chromium for a server, and opens a context for each episode."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import secrets
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeVar

from playwright.async_api import Error, async_playwright

from agentgym_servers._browser.executable import find_chromium
from agentgym_servers._browser.processes import kill_browser, temporary_folder

if TYPE_CHECKING:
    from playwright.async_api import Browser, BrowserContext, Playwright, ProxySettings, StorageState

__all__ = ["VIEWPORT", "Chromium", "answers"]

logger = logging.getLogger("agentgym_servers")

VIEWPORT = (1280, 720)
"""Width and height of a page in pixels, as in WebArena."""

_ANSWER_SECONDS = 10.0
"""After this time without an answer, a browser is replaced as if it had crashed."""

_SLOW_SECONDS = 2.0  # after which the browser is checked
_CLOSE_SECONDS = 5.0

T = TypeVar("T")


class Chromium:
    """One browser process, which starts on first use, and again after it or its driver has crashed or hangs.

    The driver is a process of `playwright`. It ends the browser when this process ends, however it ends.

    Args:
        start_proxy: Returns the proxy for every request, which it starts at the first call; None for none.
    """

    def __init__(self, start_proxy: Callable[[], Awaitable[ProxySettings]] | None = None) -> None:
        self._start_proxy = start_proxy
        self._starting = asyncio.Lock()
        self._stack = contextlib.ExitStack()
        self._playwright: Playwright | None = None
        self._browser: Browser | None = None
        self._mark = f"--agentgym-browser={secrets.token_hex(8)}"  # an argument that Chromium ignores

    async def context(
        self, headers: dict[str, str] | None = None, storage: StorageState | str | None = None
    ) -> BrowserContext:
        """Open a context, which has its own cookies, storage and tabs.

        Args:
            headers: Headers of each of its requests.
            storage: Cookies and storage to begin with; or the path of a JSON file with these.

        Raises:
            playwright.async_api.Error: The browser cannot be started.
        """
        browser = await self._running()
        try:
            return await _new_context(browser, headers, storage)
        except Error:
            if await answers(browser):
                raise
        await self._end(browser)
        return await _new_context(await self._running(), headers, storage)

    async def watch(self, work: Callable[[], Awaitable[T]]) -> T:
        """Do some work of an environment in the browser.

        If it takes long, and the browser or its driver does not answer for ten seconds, they are killed. The
        work of all environments in it then fails, and the next context starts another browser.
        """
        watch = asyncio.create_task(self._end_if_frozen())
        try:
            return await work()
        finally:
            watch.cancel()

    async def _end_if_frozen(self) -> None:
        while True:
            await asyncio.sleep(_SLOW_SECONDS)
            browser = self._browser
            if browser is not None and not await answers(browser):
                await self._end(browser)

    async def _end(self, browser: Browser) -> None:
        """End a browser that does not answer, unless another episode has noticed it before."""
        async with self._starting:
            if self._browser is browser:
                logger.warning("the browser does not answer, and is replaced")
                await self._kill()

    async def _running(self) -> Browser:
        async with self._starting:
            if self._browser is None or not self._browser.is_connected():
                await self._kill()
                with temporary_folder(self._stack):
                    self._playwright = await async_playwright().start()
                self._browser = await self._playwright.chromium.launch(
                    executable_path=find_chromium(),
                    proxy=None if self._start_proxy is None else await self._start_proxy(),
                    # A page scrolls at once, and not for some tenths of a second after a key.
                    args=["--disable-gpu", "--mute-audio", "--disable-smooth-scrolling", self._mark],
                    handle_sigint=False,
                    handle_sigterm=False,
                    handle_sighup=False,
                )
            return self._browser

    async def _kill(self) -> None:
        """End what is left of a browser and its driver, which may be frozen."""
        driver, self._playwright, self._browser = self._playwright, None, None
        if driver is not None:
            await asyncio.to_thread(kill_browser, self._mark)
            with contextlib.suppress(Error, asyncio.TimeoutError):
                await asyncio.wait_for(driver.stop(), _CLOSE_SECONDS)
        self._stack.close()

    async def close(self) -> None:
        """End the browser."""
        if self._browser is not None:
            with contextlib.suppress(Error, asyncio.TimeoutError):
                await asyncio.wait_for(self._browser.close(), _CLOSE_SECONDS)
        await self._kill()


async def _new_context(
    browser: Browser, headers: dict[str, str] | None, storage: StorageState | str | None
) -> BrowserContext:
    return await browser.new_context(
        viewport={"width": VIEWPORT[0], "height": VIEWPORT[1]},
        device_scale_factor=1,
        accept_downloads=False,
        service_workers="block",
        extra_http_headers=headers,
        storage_state=storage,
    )


async def answers(browser: Browser) -> bool:
    """Return whether a browser and its driver are alive and answer in time.

    `is_connected` is true after the driver has died, and for a moment after the browser has.
    """
    try:
        session = await asyncio.wait_for(browser.new_browser_cdp_session(), _ANSWER_SECONDS)
        await asyncio.wait_for(session.detach(), _ANSWER_SECONDS)
    except (Error, asyncio.TimeoutError):
        return False
    return True
