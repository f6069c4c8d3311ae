"""The oracle of TODOList: plays the solutions of this project's own server."""

from __future__ import annotations

from agentgym_gym.envs.todolist import TODOLIST
from agentgym_gym.oracles._solution import SolutionOracle
from agentgym_gym.servers.todolist.world import tasks_of

__all__ = ["TODOListOracle"]


class TODOListOracle(SolutionOracle):
    """Looks up what a task is about, changes what it says, and gives the answer."""

    def __init__(self) -> None:
        super().__init__(TODOLIST, lambda seed, task_id: tasks_of(seed)[task_id].solution)
