"""The oracle of WebArena: plays the solution of a task, and finds its elements on each page."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from agentgym_gym.envs.webarena import WEBARENA, ClickElement, Goto, Press, Scroll, Stop, TypeText
from agentgym_servers._frame.world_seed import seed_of
from agentgym_servers.webarena._sites.addresses import OWN_ADDRESSES
from agentgym_servers.webarena._world import world_of

if TYPE_CHECKING:
    import gymnasium

    from agentgym_gym.actions import Action
    from agentgym_servers.webarena._templates.steps import Step

__all__ = ["WebArenaOracle"]

_MOST_SCROLLS = 6


class WebArenaOracle:
    """Plays the solutions of this project's own server."""

    name = "oracle"
    blocking = False

    def __init__(self) -> None:
        self._steps: list[Step] = []
        self._scrolls = 0
        self._thought = ""

    def reset(self, env: gymnasium.Env[str, Any], observation: str, info: dict[str, Any]) -> None:
        """Look up the solution of a task.

        Raises:
            BadOption: The task is not from this project's own server, or comes from a user's data.
        """
        task = world_of(seed_of(info, WEBARENA.name)).task(info["task_id"])
        self._steps, self._scrolls = list(task.steps), 0

    def act(self, observation: str, info: dict[str, Any]) -> Action | None:
        """Return the next action of the solution, or a scroll to its element; None after the last."""
        if not self._steps:
            return None
        step = self._steps[0]
        number = 0
        if step.role:
            element = re.search(rf"\[(\d+)\] {step.role} {re.escape(repr(step.name))}", observation)
            if element is None:
                return self._scroll(step)
            number = int(element[1])
        self._scrolls = 0
        del self._steps[0]
        self._thought = _thought(step)
        return _action(step, number)

    def _scroll(self, step: Step) -> Action | None:
        if self._scrolls == _MOST_SCROLLS:
            return None
        self._scrolls += 1
        self._thought = f"I do not see the {step.role} {step.name!r} yet, so I scroll down."
        return Scroll("down")

    def thought(self) -> str:
        """Return why the last action is the next one."""
        return self._thought


def _action(step: Step, number: int) -> Action:
    if step.verb == "click":
        return ClickElement(number)
    if step.verb == "type":
        return TypeText(number, step.text, int(step.enter))
    if step.verb == "press":
        return Press(step.text)
    if step.verb == "goto":
        return Goto(OWN_ADDRESSES.shown(OWN_ADDRESSES.fill(step.text)))
    return Stop(step.text)


def _thought(step: Step) -> str:
    if step.verb == "click":
        return f"The {step.role} {step.name!r} is the next step."
    if step.verb == "type":
        return f"The field {step.name!r} needs this text."
    if step.verb == "press":
        return "The old text has to go first."
    if step.verb == "goto":
        return "The next page has an address that I know."
    return "The page shows the answer." if step.text else "Everything is done."
