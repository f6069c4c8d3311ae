"""One environment: a task being played in its own browser context."""

from __future__ import annotations

import asyncio
import base64
import logging
from functools import partial
from typing import TYPE_CHECKING, Any

from playwright.async_api import Error

from agentgym_servers._browser.actions import BrowserAction, read_action
from agentgym_servers._browser.chromium import Chromium
from agentgym_servers._browser.held_tabs import HeldTabs
from agentgym_servers._browser.tabs import ActionFailed, TabPage, Tabs
from agentgym_servers._browser.turns import Turns
from agentgym_servers.webarena._evaluation import (
    Scoring,
    answer_is_right,
    needs_pages,
    pages_are_right,
    wait_seconds,
)
from agentgym_servers.webarena._site_server import HEADER, SiteServer
from agentgym_servers.webarena._sites import host_of
from agentgym_servers.webarena._sites.web import COOKIE, signed_in_cookie

if TYPE_CHECKING:
    from agentgym_servers._browser.wall import Wall
    from agentgym_servers.webarena._judge import Judge
    from agentgym_servers.webarena._task import WebArenaTask, WebArenaWorld

__all__ = ["NoPage", "WebArenaBrowser", "WebArenaEpisode", "fault"]

logger = logging.getLogger("agentgym_servers")

# One transparent pixel: a picture of each step would take longer than the step.
_NO_PICTURE = (
    "data:image/png;base64,"
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="
)
_BLANK = {
    "1": {
        "backend_id": 1,
        "text": "[1] RootWebArea '' focused: True url: about:blank",
        "union_bound": [0.0, 0.0, 10.0, 10.0],
    }
}
_ACCOUNTS = ("shopping", "shopping_admin", "reddit", "gitlab")


class NoPage(Exception):
    """There is nothing to show: no task was started."""


class WebArenaBrowser:
    """Opens tasks in the one browser of a server, which starts with the first task.

    Args:
        world: The tasks.
        sites: The server of the sites, or the wall around the user's.
        judge: Decides whether an answer has the meaning of a reference; None to compare words.
    """

    def __init__(self, world: WebArenaWorld, sites: SiteServer | Wall, judge: Judge | None = None) -> None:
        self.world = world
        self.sites = sites if isinstance(sites, SiteServer) else None
        self.scoring = Scoring(world.addresses, world.check_seconds, judge)
        self.chromium = Chromium(sites.start)
        self.turns = Turns(self.chromium)

    async def open(self, task: WebArenaTask) -> Tabs:
        """Open a context for a task, with its own state of the sites and its own accounts."""
        token, state = "", self.world.fresh_state(task)
        headers = None
        if self.sites is not None and state is not None:
            token = self.sites.add(state)
            headers = {HEADER: token}
        context = await self.chromium.context(headers, None if task.storage is None else str(task.storage))
        if self.sites is not None:
            sites = self.sites
            context.on("close", lambda _: sites.remove(token))
        if state is not None:
            names = {site: next(iter(state.accounts(site))) for site in _ACCOUNTS}
            await context.add_cookies(
                [
                    {"name": COOKIE, "value": signed_in_cookie(name), "domain": host_of(site), "path": "/"}
                    for site, name in names.items()
                ]
            )
        tabs = Tabs(context, self.world.settle_seconds)
        try:
            for url in task.start_urls:
                await tabs.open(url)
            tabs.page = context.pages[0]
            await tabs.page.bring_to_front()
            await tabs.rest()
        except BaseException:
            await tabs.close()
            raise
        return tabs


class WebArenaEpisode:
    """One environment.

    Args:
        browser: The browser, which all environments share.

    Attributes:
        turn: Held while the browser works for the environment.
        task_id: The current task.
    """

    def __init__(self, browser: WebArenaBrowser) -> None:
        self._browser = browser
        self.turn = asyncio.Lock()
        self.task_id = 0
        self._task: WebArenaTask | None = None
        self._tabs: Tabs | None = None
        self._seen: TabPage | None = None
        self._previous = "None"
        self._done = False
        self._held = HeldTabs()

    async def reset(self, task_id: int, task: WebArenaTask) -> str:
        """Start a task; return the tabs and the page as text.

        Raises:
            TimeoutError: It took over a minute, not counting the wait for other environments.
        """
        self.task_id = task_id
        return await self._browser.turns.take(partial(self._reset, task))

    async def _reset(self, task: WebArenaTask) -> str:
        await self.close()
        tabs = await self._browser.open(task)
        self._held.hold(tabs)
        self._task, self._tabs, self._previous, self._done = task, tabs, "None", False
        self._seen = await tabs.see()
        return self._seen.text

    @property
    def prompt(self) -> str:
        """The page with its address, the task and the last action.

        Raises:
            NoPage: No task was started.
        """
        if self._task is None or self._seen is None:
            raise NoPage
        return (
            f"OBSERVATION:\n{self._seen.text}\nURL: {self._browser.world.addresses.shown(self._seen.url)}\n"
            f"OBJECTIVE: {self._task.intent}\nPREVIOUS ACTION: {self._previous}"
        )

    async def step(self, reply: str) -> dict[str, Any]:
        """Carry out the action of a reply.

        Raises:
            NoPage: No task was started.
            NotAnAction: The reply has no action.
            Error: The page cannot be read.
            TimeoutError: It took over a minute, not counting the wait for other environments.
        """
        if self._task is None or self._seen is None:
            raise NoPage
        command = read_action(self._browser.world.addresses.opened(reply))
        if self._done or self._tabs is None:
            return self._result(0.0, "The task has ended: reset the environment.", terminated=True)
        self._previous = self._described(command)
        if command.verb == "stop":
            return await self._stop(self._task, self._tabs, command.text)
        return await self._browser.turns.take(partial(self._act, self._tabs, command))

    async def _act(self, tabs: Tabs, command: BrowserAction) -> dict[str, Any]:
        reward, failure = 1.0, ""
        try:
            await tabs.act(command)
        except ActionFailed as error:
            reward, failure = 0.0, str(error)
        self._seen = await tabs.see()
        return self._result(reward, failure, terminated=False)

    async def _stop(self, task: WebArenaTask, tabs: Tabs, answer: str) -> dict[str, Any]:
        """Score the episode, whose context is then closed."""
        scoring = self._browser.scoring
        right = await answer_is_right(task, answer, scoring.judge)
        if right and needs_pages(task):

            async def judge_pages() -> bool:
                await tabs.rest()
                return await pages_are_right(task, tabs, scoring)

            right = await self._browser.turns.take(judge_pages, wait_seconds(task, scoring))
        self._done = True
        await self.close()
        return self._result(float(right), "", terminated=True)

    def _described(self, command: BrowserAction) -> str:
        """Return the action as the next page shows it."""
        if not command.element:
            return str(command)
        element = self._seen.page.elements.get(command.element) if self._seen else None
        if element is None:
            return (
                f'The action "{command.verb}" on element "[{command.element}]" failed: the page has no such'
                " element."
            )
        return f"{command} where [{command.element}] is {element.text.partition(' ')[2]}"

    def _result(self, reward: float, failure: str, *, terminated: bool) -> dict[str, Any]:
        if self._seen is None:
            raise NoPage
        info = {
            "page": {"url": self._seen.url, "content": self._seen.content},
            "fail_error": failure,
            "observation_metadata": self._metadata(_NO_PICTURE),
        }
        result = {"observation": self.prompt, "reward": reward, "terminated": terminated, "truncated": False}
        return {**result, "info": info}

    def _metadata(self, picture: str) -> dict[str, Any]:
        nodes: dict[str, Any] = _BLANK
        if self._seen is not None:
            nodes = {
                number: {"backend_id": each.node, "text": each.text, "union_bound": list(each.box)}
                for number, each in self._seen.page.elements.items()
            }
        return {"image": picture, "text": {"obs_nodes_info": nodes}}

    async def metadata(self) -> dict[str, Any]:
        """Return the elements of the page, and a picture of it."""
        picture = _NO_PICTURE
        if self._tabs is not None:
            png = base64.b64encode(await self._tabs.picture()).decode("ascii")
            picture = f"data:image/png;base64,{png}"
        return self._metadata(picture)

    async def close(self) -> None:
        """Close the context."""
        self._tabs = None
        await self._held.close()


def fault(error: Exception) -> str:
    """Return an exception of the browser on one line."""
    return error.message.splitlines()[0] if isinstance(error, Error) else f"{type(error).__name__}: {error}"
