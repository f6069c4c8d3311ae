"""The oracles of the five tool servers: each plays the solutions of its own world."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Protocol

from agentgym_gym.envs.academia import ACADEMIA
from agentgym_gym.envs.movie import MOVIE
from agentgym_gym.envs.sheet import SHEET
from agentgym_gym.envs.todolist import TODOLIST
from agentgym_gym.envs.weather import WEATHER
from agentgym_servers._frame.solution_oracle import SolutionOracle
from agentgym_servers.academia import _world as academia
from agentgym_servers.movie import _world as movie
from agentgym_servers.sheet import _world as sheet
from agentgym_servers.todolist import _world as todolist
from agentgym_servers.weather import _world as weather

if TYPE_CHECKING:
    from agentgym_gym.actions import Action
    from agentgym_gym.catalogue import Environment
    from agentgym_servers._frame.tool_tasks import FunctionCall

__all__ = ["AcademiaOracle", "MovieOracle", "SheetOracle", "TODOListOracle", "ToolOracle", "WeatherOracle"]


class _Task(Protocol):
    @property
    def solution(self) -> Iterable[FunctionCall]: ...


class _World(Protocol):
    @property
    def tasks(self) -> Sequence[_Task]: ...


class ToolOracle(SolutionOracle):
    """Plays the solutions of a tool server: function calls with their arguments.

    Args:
        environment: The environment.
        world_of: Returns the world of a seed; its tasks have solutions.
    """

    def __init__(self, environment: Environment, world_of: Callable[[int], _World]) -> None:
        actions = {action.name(): action for action in environment.grammar.actions}

        def solution(seed: int, task_id: int) -> Iterable[tuple[Action, str]]:
            calls = world_of(seed).tasks[task_id].solution
            return [(actions[call.name].from_json(call.arguments), call.thought) for call in calls]

        super().__init__(environment, solution)


AcademiaOracle = partial(ToolOracle, ACADEMIA, academia.world_of)
MovieOracle = partial(ToolOracle, MOVIE, movie.world_of)
SheetOracle = partial(ToolOracle, SHEET, sheet.world_of)
TODOListOracle = partial(ToolOracle, TODOLIST, todolist.world_of)
WeatherOracle = partial(ToolOracle, WEATHER, weather.world_of)
