"""The oracle of SQLGym: executes the statement from which the question was generated."""

from __future__ import annotations

from agentgym_gym.envs.sqlgym import SQLGYM, Query
from agentgym_servers._frame.solution_oracle import SolutionOracle
from agentgym_servers.sqlgym._world import world_of

__all__ = ["SQLGymOracle"]


class SQLGymOracle(SolutionOracle):
    """Plays the solutions of this project's own server."""

    def __init__(self) -> None:
        super().__init__(SQLGYM, lambda seed, task_id: [Query(world_of(seed).task(task_id).sql)])
