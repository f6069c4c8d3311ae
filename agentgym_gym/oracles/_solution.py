"""An oracle that plays the solutions that a world of this project's own server knows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from agentgym_gym.oracles._own_world import seed_of

if TYPE_CHECKING:
    import gymnasium

    from agentgym_gym.actions import Action
    from agentgym_gym.catalogue import Environment

__all__ = ["SolutionOracle"]

_Calls: TypeAlias = Sequence[tuple[str, dict[str, Any]]]


class SolutionOracle:
    """Plays the solution of each task, whatever is observed.

    Args:
        environment: What is played.
        solution: Returns the solution of a task, by the world's seed and the task's id: functions with their
            arguments.
    """

    name = "oracle"
    blocking = False

    def __init__(self, environment: Environment, solution: Callable[[int, int], _Calls]) -> None:
        self._title = environment.name
        self._solution = solution
        self._actions = {action.name(): action for action in environment.grammar.actions}
        self._left: Iterator[Action] = iter(())

    def reset(self, env: gymnasium.Env[str, Any], observation: str, info: dict[str, Any]) -> None:
        """Look up the solution of a task.

        Raises:
            BadOption: The task is not played on this project's own server.
        """
        calls = self._solution(seed_of(info, self._title), info["task_id"])
        self._left = iter([self._actions[name].from_json(arguments) for name, arguments in calls])

    def act(self, observation: str, info: dict[str, Any]) -> Action | None:
        """Return the next action of the solution; None behind its end."""
        return next(self._left, None)
