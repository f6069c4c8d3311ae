"""The oracle of TODOList: plays the solutions of this project's own server."""

from __future__ import annotations

from agentgym_gym.envs.todolist import TODOLIST
from agentgym_servers._frame.solution_oracle import ToolOracle
from agentgym_servers.todolist._world import world_of

__all__ = ["TODOListOracle"]


class TODOListOracle(ToolOracle):
    """Looks up the data of a task, makes the changes, and gives the answer."""

    def __init__(self) -> None:
        super().__init__(TODOLIST, world_of)
