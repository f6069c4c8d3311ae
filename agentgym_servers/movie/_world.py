"""The world of the Movie server: films and people of a seed, and tasks with their answers and solutions."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from agentgym_servers._frame.tool_tasks import require
from agentgym_servers._frame.tool_world import ToolTask, ToolWorld, draw_tasks
from agentgym_servers.movie._films import Library
from agentgym_servers.movie._question_builder import MovieQuestionBuilder
from agentgym_servers.movie._questions import KINDS

if TYPE_CHECKING:
    from agentgym_servers._frame.draw import Draw

__all__ = ["TASKS", "world_of"]

TASKS = 238
"""The number of tasks."""

_MOST_CALLS = 11  # AgentGym ends an episode after 12 turns; the last is `finish`


@lru_cache(maxsize=2)
def world_of(seed: int) -> ToolWorld[Library, ToolTask]:
    """Return the films, people and tasks of a seed; cached."""
    library = Library(seed)

    def task(task_id: int, draw: Draw) -> ToolTask:
        builder = MovieQuestionBuilder(draw, library)
        question = KINDS[task_id % len(KINDS)](builder)
        require(len(builder.calls) <= _MOST_CALLS)
        return ToolTask(question.goal, question.answer, builder.solution(question))

    return ToolWorld(library, draw_tasks(TASKS, task, "movie", seed, "task"))
