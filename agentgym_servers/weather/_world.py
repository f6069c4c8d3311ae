"""The world of the Weather server: the weather of a seed, and tasks with their answers and solutions."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from datetime import date
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from agentgym_servers._frame.draw import Draw
from agentgym_servers._frame.tool_tasks import Call, Unfit
from agentgym_servers.weather._climate import Climate
from agentgym_servers.weather._question_builder import Asking
from agentgym_servers.weather._questions import KINDS

if TYPE_CHECKING:
    from agentgym_servers.weather._places import City

__all__ = ["TASKS", "Task", "World", "world_of"]

TASKS = 343
"""How many tasks there are."""


@dataclass(frozen=True)
class Task:
    """A question of a user.

    Attributes:
        goal: What the agent is told to do.
        today: The user's date.
        home: Where the user is.
        answer: The right answer.
        solution: The calls that find it; ``finish`` comes last.
    """

    goal: str
    today: date
    home: City
    answer: Any
    solution: tuple[Call, ...]


class World:
    """The weather of a seed, and its tasks.

    Args:
        seed: Of the world.

    Attributes:
        climate: The weather.
        tasks: The tasks by id; no two have the same goal.
    """

    def __init__(self, seed: int) -> None:
        self.climate = Climate(seed)
        asked: set[str] = set()
        self.tasks = tuple(self._task(seed, task_id, asked) for task_id in range(TASKS))

    def _task(self, seed: int, task_id: int, asked: set[str]) -> Task:
        """Return a task with a goal that is none of those asked already, and add it to them."""
        kind = KINDS[task_id % len(KINDS)]
        for attempt in itertools.count():
            ask = Asking(Draw("weather", seed, "task", task_id, attempt), self.climate)
            try:
                question = kind(ask)
            except Unfit:
                continue
            if question.goal not in asked:
                break
        asked.add(question.goal)
        solution = (
            Call("get_user_current_date", {}),
            *ask.calls,
            Call("finish", {"answer": question.answer}),
        )
        return Task(question.goal, ask.today, ask.home, question.answer, solution)


@lru_cache(maxsize=2)
def world_of(seed: int) -> World:
    """Return the world of a seed, made once."""
    return World(seed)
