"""The oracle of MiniWoB: plays the solution of a page by its name, from the text of each observation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agentgym_gym.envs.miniwob import task_of
from agentgym_servers.miniwob._solutions import SOLUTIONS
from agentgym_servers.miniwob._solutions.page_view import NoSolution, PageView

if TYPE_CHECKING:
    from collections.abc import Iterator

    import gymnasium

    from agentgym_gym.actions import Action

__all__ = ["MiniWoBOracle"]


class MiniWoBOracle:
    """Plays the solutions, none of which reads more than the observations."""

    name = "oracle"
    blocking = False

    def __init__(self) -> None:
        self._view = PageView("")
        self._rest: Iterator[Action] = iter(())
        self._thought = ""

    def reset(self, env: gymnasium.Env[str, Any], observation: str, info: dict[str, Any]) -> None:
        """Begin the solution of a page."""
        self._view = PageView(observation)
        name, _ = task_of(info["task_id"])
        self._rest = SOLUTIONS[name](self._view)

    def act(self, observation: str, info: dict[str, Any]) -> Action | None:
        """Return the next action; None if the solution ends, or the page is not as it expects."""
        self._view.show(observation)
        try:
            action = next(self._rest, None)
        except (NoSolution, RuntimeError):  # the latter by Python, where `next` in a solution finds nothing
            return None
        self._thought = self._described(action)
        return action

    def _described(self, action: Action | None) -> str:
        number = getattr(action, "id", None)
        line = next((line for line in self._view.lines if line.number == number), None)
        what = "the page" if line is None else f"the {line.role} {line.name!r}"
        return f"The objective is: {self._view.goal} The next step is at {what}."

    def thought(self) -> str:
        """Return the objective and the element of the last action."""
        return self._thought
