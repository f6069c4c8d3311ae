"""The world of the Movie server: films and people of a seed, and tasks with their answers and solutions."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from agentgym_servers._frame.draw import Draw
from agentgym_servers._frame.tool_tasks import Call, Unfit
from agentgym_servers.movie._films import Library
from agentgym_servers.movie._question_builder import Asking
from agentgym_servers.movie._questions import KINDS

__all__ = ["TASKS", "Task", "World", "world_of"]

TASKS = 238
"""How many tasks there are."""

_MOST_CALLS = 11  # AgentGym ends an episode after 12 turns; the last is `finish`


@dataclass(frozen=True)
class Task:
    """A question.

    Attributes:
        goal: What the agent is told to do.
        answer: The right answer; a list is sorted.
        solution: The calls that find it; ``finish`` comes last.
    """

    goal: str
    answer: Any
    solution: tuple[Call, ...]


class World:
    """The films and people of a seed, and its tasks.

    Args:
        seed: Of the world.

    Attributes:
        library: The films and people.
        tasks: The tasks by id; no two have the same goal.
    """

    def __init__(self, seed: int) -> None:
        self.library = Library(seed)
        asked: set[str] = set()
        self.tasks = tuple(self._task(seed, task_id, asked) for task_id in range(TASKS))

    def _task(self, seed: int, task_id: int, asked: set[str]) -> Task:
        """Return a task with a goal that is none of those asked already, and add it to them."""
        kind = KINDS[task_id % len(KINDS)]
        for attempt in itertools.count():
            ask = Asking(Draw("movie", seed, "task", task_id, attempt), self.library)
            try:
                question = kind(ask)
            except Unfit:
                continue
            if question.goal not in asked and len(ask.calls) <= _MOST_CALLS:
                break
        asked.add(question.goal)
        return Task(question.goal, question.answer, (*ask.calls, Call("finish", {"answer": question.answer})))


@lru_cache(maxsize=2)
def world_of(seed: int) -> World:
    """Return the world of a seed, made once."""
    return World(seed)
