"""The world of the Weather server: the weather of a seed, and tasks with their answers and solutions."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from functools import lru_cache
from typing import TYPE_CHECKING

from agentgym_servers._frame.tool_world import ToolTask, ToolWorld, draw_tasks
from agentgym_servers.weather._climate import Climate
from agentgym_servers.weather._question_builder import WeatherQuestionBuilder
from agentgym_servers.weather._questions import KINDS

if TYPE_CHECKING:
    from agentgym_servers._frame.draw import Draw
    from agentgym_servers.weather._places import City

__all__ = ["TASKS", "WeatherTask", "world_of"]

TASKS = 343
"""The number of tasks."""


@dataclass(frozen=True)
class WeatherTask(ToolTask):
    """A user's question.

    Attributes:
        today: The user's date.
        home: The user's city.
    """

    today: date
    home: City


@lru_cache(maxsize=2)
def world_of(seed: int) -> ToolWorld[Climate, WeatherTask]:
    """Return the weather and tasks of a seed; cached."""
    climate = Climate(seed)

    def task(task_id: int, draw: Draw) -> WeatherTask:
        builder = WeatherQuestionBuilder(draw, climate)
        question = KINDS[task_id % len(KINDS)](builder)
        return WeatherTask(
            question.goal, question.answer, builder.solution(question), builder.today, builder.home
        )

    return ToolWorld(climate, draw_tasks(TASKS, task, "weather", seed, "task"))
