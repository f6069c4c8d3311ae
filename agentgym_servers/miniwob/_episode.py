"""One environment: a task of MiniWoB in a browser context of its own."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from agentgym_gym.envs.miniwob import task_of
from agentgym_servers._browser.actions import NotAnAction, read_command
from agentgym_servers._browser.held_tabs import HeldTabs
from agentgym_servers._browser.tabs import ActionFailed, Tabs
from agentgym_servers._browser.turns import Turns
from agentgym_servers._frame.app import CannotJudge, Failed
from agentgym_servers.miniwob._pages import serve_pages, url_of

if TYPE_CHECKING:
    from agentgym_servers._browser.chromium import Chromium

__all__ = ["VERBS", "Episode", "Stage", "Turn"]

VERBS = frozenset({"click", "hover", "press", "scroll", "type"})
"""The actions of one page without addresses and tabs."""

# Runs before the page's own scripts. The random numbers while a page loads, and the day that it takes for
# today, are the same in each process. No time passes between actions: delayed work is done at once, and
# repeated work (a blinking cursor, a countdown) never. The page has a clipboard of its own, as all contexts
# share that of the browser.
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


@dataclass(frozen=True)
class Turn:
    """The state after a reset or an action.

    Attributes:
        observation: The objective, the failure of the last action if it failed, and the page.
        reward: The reward of the page; 0 before the end.
        done: Whether the episode is over.
    """

    observation: str
    reward: float = 0.0
    done: bool = False


class Stage:
    """The shared parts of all environments of a server.

    Args:
        browser: The browser.
    """

    def __init__(self, browser: Chromium) -> None:
        self._browser = browser
        self.turns = Turns()

    async def open(self, name: str) -> Tabs:
        """Open the page of a task in a context of its own."""
        context = await self._browser.context()
        tabs = Tabs(context, detailed=True)
        try:
            await serve_pages(context)
            await context.add_init_script(_BEFORE)
            await tabs.open(url_of(name))
        except BaseException:
            await tabs.close()
            raise
        return tabs


class Episode:
    """One environment.

    Args:
        stage: The parts that all environments share.
    """

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._tabs: Tabs | None = None
        self.name = self.goal = ""
        self._task_id = 0
        self._errors: list[str] = []  # of the page's scripts, which also compute the reward
        self.last = Turn("")
        self._held = HeldTabs()

    async def reset(self, task_id: int) -> Turn:
        """Start a task."""
        return await self._stage.turns.take(partial(self._reset, task_id))

    async def _reset(self, task_id: int) -> Turn:
        name, seed = task_of(task_id)
        await self.close()
        tabs = await self._stage.open(name)
        self._held.hold(tabs)
        errors = self._errors = list[str]()
        tabs.context.on("weberror", lambda each: errors.append(str(each.error).partition("\n")[0]))
        goal = await tabs.shown.evaluate(_START, _SEED.format(seed))
        self._tabs, self.name, self.goal = tabs, name, " ".join(goal.split())
        self._task_id = task_id
        self.last = Turn(await self._observe(tabs))
        return self.last

    async def step(self, action: str) -> Turn:
        """Carry out an action; one that fails leaves the page as it is, with the reason in the observation.

        Raises:
            CannotJudge: A script of the page failed, or the page ended without a reward.
            Failed: No task was started, or the last reset failed.
        """
        if self._tabs is None:
            raise Failed("The environment has no task: reset it.")
        if self.last.done:
            return Turn(self.last.observation, 0.0, done=True)
        return await self._stage.turns.take(partial(self._step, self._tabs, action))

    async def _step(self, tabs: Tabs, action: str) -> Turn:
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
        self.last = Turn(await self._observe(tabs, failure), reward if done else 0.0, done=done)
        return self.last

    async def _observe(self, tabs: Tabs, failure: str = "") -> str:
        seen = await tabs.see()
        failed = f"THE ACTION FAILED: {failure}\n" if failure else ""
        return f"OBJECTIVE: {self.goal}\n{failed}\n{seen.page.text}"

    def detail(self) -> dict[str, Any]:
        """Return the task and the last turn."""
        return {"task": self.name, "goal": self.goal, **vars(self.last)}

    async def close(self) -> None:
        """Close the context."""
        self._tabs = None
        await self._held.close()
