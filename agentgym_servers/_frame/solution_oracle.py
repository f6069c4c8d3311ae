"""An oracle that plays the solutions stored in the worlds of this project's own servers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from agentgym_servers._frame.world_seed import seed_of

if TYPE_CHECKING:
    import gymnasium

    from agentgym_gym.actions import Action
    from agentgym_gym.catalogue import Environment

__all__ = ["SolutionOracle"]


class SolutionOracle:
    """Plays the solution of each task and ignores the observations.

    Args:
        environment: The environment.
        solution: Returns the actions that win a task, each with the thought before it, from the world's seed
            and the task's id; none where no solution is known.
    """

    name = "oracle"
    blocking = False

    def __init__(
        self, environment: Environment, solution: Callable[[int, int], Iterable[tuple[Action, str]]]
    ) -> None:
        self._title = environment.name
        self._solution = solution
        self._remaining: Iterator[tuple[Action, str]] = iter(())
        self._thought = ""

    def reset(self, env: gymnasium.Env[str, Any], observation: str, info: dict[str, Any]) -> None:
        """Look up the solution of a task.

        Raises:
            BadOption: The task is not from this project's own server, or comes from a user's data.
        """
        self._remaining = iter(self._solution(seed_of(info, self._title), info["task_id"]))

    def act(self, observation: str, info: dict[str, Any]) -> Action | None:
        """Return the next action of the solution; None after the last."""
        action, self._thought = next(self._remaining, (None, ""))
        return action

    def thought(self) -> str:
        """Return why the last action is the next one."""
        return self._thought
