"""Starts one Chromium for a server, and opens a context for each episode."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING

from playwright.async_api import Error, async_playwright

from agentgym_servers._browser.executable import find_chromium

if TYPE_CHECKING:
    from playwright.async_api import Browser, BrowserContext, Playwright, StorageState

__all__ = ["VIEWPORT", "Chromium", "answers"]

VIEWPORT = (1280, 720)
"""Width and height of a page in pixels, as in WebArena."""

_ANSWER_SECONDS = 20.0  # on a busy machine


class Chromium:
    """One browser process, which starts on first use, and again after it or its driver has crashed.

    The driver is a process of `playwright`. It ends the browser when this process ends, however it ends.

    Args:
        proxy: The address of a proxy for every request, such as ``http://127.0.0.1:1234``; None for none.
    """

    def __init__(self, proxy: str | None = None) -> None:
        self._proxy = proxy
        self._starting = asyncio.Lock()
        self._playwright: Playwright | None = None
        self._browser: Browser | None = None

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
        async with self._starting:
            if self._browser is browser:  # no other episode has noticed it before
                await self.close()
        return await _new_context(await self._running(), headers, storage)

    async def _running(self) -> Browser:
        async with self._starting:
            if self._browser is None or not self._browser.is_connected():
                await self.close()
                self._playwright = await async_playwright().start()
                self._browser = await self._playwright.chromium.launch(
                    executable_path=find_chromium(),
                    proxy={"server": self._proxy} if self._proxy else None,
                    # A page scrolls at once, and not for some tenths of a second after a key.
                    args=["--disable-gpu", "--mute-audio", "--disable-smooth-scrolling"],
                    handle_sigint=False,
                    handle_sigterm=False,
                    handle_sighup=False,
                )
            return self._browser

    async def close(self) -> None:
        """End the browser."""
        browser, self._browser = self._browser, None
        driver, self._playwright = self._playwright, None
        with contextlib.suppress(Error):
            if browser is not None:
                await browser.close()
        if driver is not None:
            await driver.stop()


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
    """Return whether a browser and its driver are alive.

    `is_connected` is true after the driver has died, and for a moment after the browser has.
    """
    try:
        session = await asyncio.wait_for(browser.new_browser_cdp_session(), _ANSWER_SECONDS)
        await asyncio.wait_for(session.detach(), _ANSWER_SECONDS)
    except (Error, asyncio.TimeoutError):
        return False
    return True
