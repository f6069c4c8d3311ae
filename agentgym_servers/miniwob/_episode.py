"""One environment: a task of MiniWoB in its own browser context."""

from __future__ import annotations

import asyncio
import math
from functools import partial
from typing import TYPE_CHECKING, Any

from agentgym_gym.envs.miniwob import task_of
from agentgym_servers._browser.actions import NotAnAction, read_command
from agentgym_servers._browser.held_tabs import HeldTabs
from agentgym_servers._browser.tabs import ActionFailed
from agentgym_servers._frame.app import CannotJudge, Failed
from agentgym_servers._frame.game_turn import GameTurn

if TYPE_CHECKING:
    from agentgym_servers._browser.tabs import Tabs
    from agentgym_servers.miniwob._pages import MiniWobBrowser

__all__ = ["VERBS", "MiniWobEpisode"]

VERBS = frozenset({"click", "hover", "press", "scroll", "type"})
"""The actions of one page without addresses and tabs."""

# Starts the episode as MiniWoB's own environment does, without its time limit, its display and animations.
# Pictures that a style shows in place of an element, or under the mouse, are loaded before: an element has no
# size, and so no line in the text, while its picture loads.
_START = """async seed => {
    const style = document.createElement("style");
    style.textContent = "#reward-display, #click-canvas, #sync-task-cover { display: none !important; }";
    document.head.append(style);
    if (window.jQuery) jQuery.fx.off = true;
    core.EPISODE_MAX_TIME = 1e9;
    Math.seedrandom(seed);
    core.startEpisodeReal();
    window.episodeIsStarted = true;
    const query = document.getElementById("query");
    if (query) query.setAttribute("aria-hidden", "true");
    const shown = /(?::hover.*|content: )url\\("([^"]+)"\\)/;
    window.pictures = [...document.styleSheets].flatMap(sheet => [...sheet.cssRules]
        .map(rule => rule.cssText.match(shown)).filter(match => match)
        .map(match => Object.assign(new Image(), {src: new URL(match[1], sheet.href || location)})));
    window.allLoaded = pictures => Promise.all(pictures.map(picture => picture.decode().catch(() => 0)));
    await allLoaded([...pictures, ...document.images]);
    const utterance = core.getUtterance();
    return typeof utterance === "string" ? utterance : utterance.utterance;
}"""

_SEED = "{:02}"
"""The seed as text. The generator repeats a text, so that seeds 1 and 11 would begin the same page."""

# Read after what the action has delayed, and with its pictures; an event of scrolling comes with the next
# frame. A page that was left has lost its episode.
_STATE = """async () => {
    await nextFrame();
    for (let turn = 0; turn < 4; turn++) await new Promise(done => setTimeout(done, 0));
    if (window.allLoaded) await allLoaded([...document.images]);
    return window.episodeIsStarted ? [WOB_DONE_GLOBAL, WOB_RAW_REWARD_GLOBAL] : [true, 0];
}"""


class MiniWobEpisode:
    """One environment.

    Args:
        browser: The browser, which all environments share.

    Attributes:
        turn: Held while the browser works for the environment.
    """

    def __init__(self, browser: MiniWobBrowser) -> None:
        self._browser = browser
        self._tabs: Tabs | None = None
        self._task_id = 0
        self._name = self._goal = ""
        self._errors: list[str] = []  # of the page's scripts, which also compute the reward
        self._last: GameTurn | None = None
        self.turn = asyncio.Lock()
        self._held = HeldTabs()

    async def reset(self, task_id: int) -> GameTurn:
        """Start a task; return its first observation: the objective and the page."""
        return await self._browser.turns.take(partial(self._reset, task_id))

    async def _reset(self, task_id: int) -> GameTurn:
        name, seed = task_of(task_id)
        await self.close()
        tabs = await self._browser.open(name)
        self._held.hold(tabs)
        errors = self._errors = list[str]()
        tabs.context.on("weberror", lambda each: errors.append(str(each.error).partition("\n")[0]))
        goal = await tabs.shown.evaluate(_START, _SEED.format(seed))
        self._tabs, self._name, self._goal = tabs, name, " ".join(goal.split())
        self._task_id = task_id
        self._last = GameTurn(await self._observe(tabs), 0.0)
        return self._last

    @property
    def last(self) -> GameTurn:
        """The result of the last action; before the first action, the first observation.

        Raises:
            Failed: No task was started.
        """
        if self._last is None:
            raise Failed("The environment has no task yet: reset it.")
        return self._last

    async def step(self, action: str) -> GameTurn:
        """Carry out an action; one that fails leaves the page as it is, with the reason in the observation.

        Returns:
            The result. Its reward is the page's, and 0 before the end.

        Raises:
            CannotJudge: A script of the page failed, or the page ended without a reward.
            Failed: No task was started, or the last reset failed.
        """
        last = self.last
        if self._tabs is None:
            raise Failed("The environment has no task: reset it.")
        if last.done:
            return GameTurn(last.observation, 0.0, done=True)
        return await self._browser.turns.take(partial(self._step, self._tabs, action))

    async def _step(self, tabs: Tabs, action: str) -> GameTurn:
        failure = ""
        try:
            command = read_command(action)
            if command.verb not in VERBS:
                raise NotAnAction(f"Invalid action {command.verb}")
            await tabs.act(command)
        except (ActionFailed, NotAnAction) as error:
            failure = str(error)
        done, reward = await tabs.shown.evaluate(_STATE)
        if self._errors and not done:
            raise CannotJudge(self._task_id, f"a script of its page failed: {self._errors[0]:.200}")
        if done and not (isinstance(reward, int | float) and math.isfinite(reward)):
            raise CannotJudge(self._task_id, f"its page ended with the reward {reward!r:.80}")
        self._last = GameTurn(await self._observe(tabs, failure), reward if done else 0.0, done=done)
        return self._last

    async def _observe(self, tabs: Tabs, failure: str = "") -> str:
        seen = await tabs.see()
        failed = f"THE ACTION FAILED: {failure}\n" if failure else ""
        return f"OBJECTIVE: {self._goal}\n{failed}\n{seen.page.text}"

    def detail(self) -> dict[str, Any]:
        """Return the task and the last turn."""
        return {"task": self._name, "goal": self._goal, **vars(self.last)}

    async def close(self) -> None:
        """Close the context."""
        self._tabs = None
        await self._held.close()
