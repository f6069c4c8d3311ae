"""The world of a tool server: the data of its functions, and its tasks, each with a different goal."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from agentgym_servers._frame.draw import Draw
from agentgym_servers._frame.tool_tasks import FunctionCall, Unfit

__all__ = ["ToolTask", "ToolWorld", "draw_tasks"]


@dataclass(frozen=True)
class ToolTask:
    """A task that ``finish`` ends with an answer.

    Attributes:
        goal: The instruction for the agent.
        answer: The argument that ``finish`` requires; a list is sorted.
        solution: The calls that solve it; ``finish`` comes last.
    """

    goal: str
    answer: Any
    solution: tuple[FunctionCall, ...]


class _HasGoal(Protocol):
    @property
    def goal(self) -> str: ...


_ATTEMPTS = 1000  # far more than any task needs; ensures that every seed terminates

S_co = TypeVar("S_co", covariant=True)
T = TypeVar("T", bound=_HasGoal)
T_co = TypeVar("T_co", covariant=True)


@dataclass(frozen=True, eq=False)
class ToolWorld(Generic[S_co, T_co]):
    """The world of a seed.

    Attributes:
        setting: The data that the functions use, such as films or the weather.
        tasks: The tasks by their ids; no two have the same goal.
    """

    setting: S_co
    tasks: tuple[T_co, ...]


def draw_tasks(count: int, make: Callable[[int, Draw], T | None], *seed: object) -> tuple[T, ...]:
    """Return tasks with different goals; each is redrawn until it is valid.

    Args:
        count: The number of tasks.
        make: Makes the task of an id from a draw. Returns None or raises `Unfit` if the draw gives no valid
            task.
        seed: The seed of the draws, as for `Draw`; the task's id and the number of the attempt are appended.

    Raises:
        RuntimeError: No attempt gives a valid task.
    """
    tasks: dict[str, T] = {}
    for task_id in range(count):
        for attempt in range(_ATTEMPTS):
            with contextlib.suppress(Unfit):
                task = make(task_id, Draw(*seed, task_id, attempt))
                if task is not None and task.goal not in tasks:
                    tasks[task.goal] = task
                    break
        else:
            raise RuntimeError(f"no draw of {_ATTEMPTS} makes task {task_id} of {seed}; use another seed")
    return tuple(tasks.values())
