"""The browser context of one environment, from task to task."""

from __future__ import annotations

import asyncio
import weakref
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agentgym_servers._browser.tabs import Tabs

__all__ = ["HeldTabs"]


class HeldTabs:
    """Closes the tabs of an environment, also after the server has dropped the environment as idle.

    Made in the event loop of the browser.
    """

    def __init__(self) -> None:
        self._open: list[Tabs] = []
        weakref.finalize(self, _close_later, self._open, asyncio.get_running_loop())

    def hold(self, tabs: Tabs) -> None:
        """Close these tabs with the others."""
        self._open.append(tabs)

    async def close(self) -> None:
        """Close all."""
        while self._open:
            await self._open.pop().close()


def _close_later(tabs: list[Tabs], loop: asyncio.AbstractEventLoop) -> None:
    if tabs and not loop.is_closed():
        for each in tabs:
            asyncio.run_coroutine_threadsafe(each.close(), loop)
