"""Oracles that play the solutions that a world of this project's own server knows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from agentgym_servers._frame.world_seed import seed_of

if TYPE_CHECKING:
    import gymnasium

    from agentgym_gym.actions import Action
    from agentgym_gym.catalogue import Environment

__all__ = ["SolutionOracle", "ToolOracle"]


class SolutionOracle:
    """Plays the solution of each task, whatever is observed.

    Args:
        environment: What is played.
        solution: Returns the actions that win a task, by the world's seed and the task's id; none where it
            knows none.
    """

    name = "oracle"
    blocking = False

    def __init__(self, environment: Environment, solution: Callable[[int, int], Iterable[Action]]) -> None:
        self._title = environment.name
        self._solution = solution
        self._left: Iterator[Action] = iter(())

    def reset(self, env: gymnasium.Env[str, Any], observation: str, info: dict[str, Any]) -> None:
        """Look up the solution of a task.

        Raises:
            BadOption: The task is not played on this project's own server, in a world made from a seed.
        """
        self._left = iter(self._solution(seed_of(info, self._title), info["task_id"]))

    def act(self, observation: str, info: dict[str, Any]) -> Action | None:
        """Return the next action of the solution; None behind its end."""
        return next(self._left, None)


class _Task(Protocol):
    @property
    def solution(self) -> Iterable[tuple[str, dict[str, Any]]]: ...


class _World(Protocol):
    @property
    def tasks(self) -> Sequence[_Task]: ...


class ToolOracle(SolutionOracle):
    """Plays the solutions of a tool server: functions with their arguments.

    Args:
        environment: What is played.
        world_of: Returns the world of a seed, whose tasks know their solutions.
    """

    def __init__(self, environment: Environment, world_of: Callable[[int], _World]) -> None:
        actions = {action.name(): action for action in environment.grammar.actions}

        def solution(seed: int, task_id: int) -> Iterable[Action]:
            calls = world_of(seed).tasks[task_id].solution
            return [actions[name].from_json(arguments) for name, arguments in calls]

        super().__init__(environment, solution)
