"""MiniWoB++: tasks of one small page each (Liu et al., 2018, arXiv:1802.08802).

AgentGym has no such environment. This project's server has the protocol of AgentGym's TextCraft server, with
the name of the task and its goal in the response to a reset. The actions are WebArena's, without navigation
and tabs.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import ClassVar

from agentgym_gym.actions import Grammar
from agentgym_gym.calls import Body, Call, Flow
from agentgym_gym.catalogue import Environment
from agentgym_gym.envs._miniwob_names import (
    LIKE_TRAIN,
    TASK_NAMES,
    TRAIN_VARIATIONS,
    UNSEEN_NAMES,
    VARIATIONS,
)
from agentgym_gym.envs.webarena import ClickElement, Hover, Press, Scroll, TypeText
from agentgym_gym.errors import BadReply
from agentgym_gym.wire import Outcome, Score, Seen, Start, Wire, look

__all__ = ["MINIWOB", "TASK_NAMES", "UNSEEN_NAMES", "VARIATIONS", "MiniWoBWire", "task_of"]


def task_of(task_id: int) -> tuple[str, int]:
    """Return the name of a task's page, and the seed of the page.

    Args:
        task_id: ``VARIATIONS`` times the index of the name in ``TASK_NAMES``, plus the seed.

    Raises:
        IndexError: There is no such task.
    """
    index, seed = divmod(task_id, VARIATIONS)
    return TASK_NAMES[index], seed


_GRAMMAR = Grammar(
    [ClickElement(5), TypeText(5, "Tora", 0), Hover(5), Press("Control+a"), Scroll("down")],
)

_RULES = """\
You are working on a small page in a web browser to reach an objective. After each of your actions you are \
shown the objective and the page.

- The page is shown as its accessibility tree: each element stands on a line of its own, with a number in \
brackets before it. Actions name an element by that number. An element keeps its number.
- A line `clickable` is an element without a role that responds to clicks; its name is its class or id.
- `type` clicks a field and adds the text to what the field contains. To replace that, click the field and \
press `Control+a` first.
- Most pages end by a click on a button such as Submit. The page then scores the result, and nothing can be \
corrected."""


class MiniWoBWire(Wire):
    """Protocol of this project's MiniWoB server: ids under ``id``, errors as ``{"error": …}``, HTTP 200."""

    greeting = "This is environment MiniWoB."
    routes: ClassVar[Mapping[str, Collection[str]]] = {"/reset": ("id", "data_idx")}
    closes = True

    def create(self, task_id: int) -> Flow[int]:
        """Create an environment."""
        return (yield Call("create", "POST", "/create", {})).body().integer("id")

    def reset(self, env_id: int, task_id: int) -> Flow[Start]:
        """Start a task."""
        body = (yield Call("reset", "POST", "/reset", {"id": env_id, "data_idx": task_id})).body()
        body.check_id("id", env_id)
        return Start(body.text("observation"), goal=body.text("goal"))

    def step(self, env_id: int, action: str) -> Flow[Outcome]:
        """Carry out one action.

        Raises:
            BadReply: The reward is out of range.
        """
        body = (yield Call("step", "POST", "/step", {"id": env_id, "action": action})).body()
        reward = body.number("reward")
        if not -1 <= reward <= 1:
            raise BadReply(f"{body.call} broke the protocol: 'reward' should be from -1 to 1, got {reward}")
        return Outcome(body.text("observation"), reward, body.flag("done"))

    def recognise(self, env_id: int, seen: Seen) -> Flow[bool | None]:
        """Compare the last observation."""
        shown = yield from look(Call("observe", "GET", "/observation", query={"id": env_id}), seen)
        return shown.text() == seen.observation if isinstance(shown, Body) else shown

    def close(self, env_id: int) -> Flow[None]:
        """Free an environment; the server ignores ids that are already closed."""
        (yield Call("close", "POST", "/close", {"id": env_id})).body()

    def judge(self, start: Start, score: float, action: str, outcome: Outcome) -> Score:
        """Use the page's reward at the end as the score; only the full reward is a success."""
        worth = outcome.reward if outcome.done else score
        return Score(worth, outcome.done and worth == 1.0, outcome.done, worth)


def _task_id(name: str, seed: int) -> int:
    return TASK_NAMES.index(name) * VARIATIONS + seed


_TWO_MAILS = "two mails are by that sender, and only the second one counts"
_UNWINNABLE = {
    _task_id("email-inbox-forward", 22): _TWO_MAILS,
    _task_id("email-inbox-noscroll", 22): _TWO_MAILS,
    _task_id("terminal", 1): "the page does not count shark.sh, the only fitting file",
}


def _splits() -> dict[str, range | tuple[int, ...]]:
    everything = range(len(TASK_NAMES) * VARIATIONS)
    unseen = {TASK_NAMES.index(name) for name in UNSEEN_NAMES}
    repeated = {_task_id(name, seed) for name, seeds in LIKE_TRAIN.items() for seed in seeds}
    new = [task for task in everything if task not in _UNWINNABLE and task not in repeated]
    known = [task for task in new if task // VARIATIONS not in unseen]
    return {
        "all": everything,
        "train": tuple(task for task in known if task % VARIATIONS < TRAIN_VARIATIONS),
        "test": tuple(task for task in known if task % VARIATIONS >= TRAIN_VARIATIONS),
        "test_unseen": tuple(task for task in new if task // VARIATIONS in unseen),
    }


_QUIRKS = """\
- AgentGym has neither a server nor a client for this environment. It has the protocol of AgentGym's TextCraft
  server. A reset also returns `task`, the name of the page, and `goal`.
- A task id is 100 times the index of the page in `agentgym_gym.envs.miniwob.TASK_NAMES`, plus a seed from 0
  to 99. `task_of` returns both. The first 80 seeds are `train` and the others `test`. All seeds of the pages
  in `UNSEEN_NAMES` are `test_unseen`. Some pages have few different tasks. A test task with the texts and the
  winning actions of a training task is only in `all`, so seven pages have no test tasks.
- The score is the reward of the page at the end, from -1 to 1, without its decay by time. Some pages give a
  part of the reward for a part of the solution. `success` requires the full reward, as the binary reward of
  the package `miniwob` does.
- The pages have no time limit. The turn limit ends an episode with the score 0."""

_LOCAL_QUIRKS = """\
- It needs Chromium or Chrome on this machine, and the extra `servers-miniwob` for `playwright` and the pages
  of the package `miniwob` (MIT license, 7 MB). The server does not import the package, which needs Selenium.
- One browser serves all environments. Each task has a separate browser context, which ends with the task.
  The browser reaches no host: the server answers its requests with the files of the package.
- The numbers of elements are counted from 1 in each episode. A page is the same in each process: its random
  numbers have the seed of the task, its day is 2016-12-15, and jQuery has no animations.
- The line of the objective is left out of the tree. Fields are shown with their values, and elements without
  a role that respond to clicks with their class or id.
- The server skips pages that need coordinates, drag and drop, drawing, colors or shapes without text, or a
  limited time.
- After the end no action is executed, and the reward is not paid again."""

MINIWOB = Environment(
    name="MiniWoB",
    summary="Carry out a task on one small web page through a browser "
    "(MiniWoB++; Liu et al., 2018, arXiv:1802.08802).",
    wire=MiniWoBWire(),
    grammar=_GRAMMAR,
    rules=_RULES,
    max_turns=20,
    splits=_splits(),
    unwinnable=_UNWINNABLE,
    score_range=(-1.0, 1.0),
    on_unknown="refuse",
    local_server="agentgym_servers.miniwob:SERVER",
    local_quirks=_LOCAL_QUIRKS,
    oracle="agentgym_servers.miniwob._oracle:MiniWoBOracle",
    quirks=_QUIRKS,
    transcript=(
        'OBJECTIVE: Enter "Tora" into the text field and press Submit.\n\n[1] RootWebArea …',
        "```type [2] [Tora] [0]```",
        'OBJECTIVE: Enter "Tora" into the text field and press Submit.\n\n[1] RootWebArea …',
        "```click [4]```",
        'OBJECTIVE: Enter "Tora" into the text field and press Submit.\n\n[1] RootWebArea …',
    ),
)
