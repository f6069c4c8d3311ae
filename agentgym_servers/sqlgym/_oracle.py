"""The oracle of SQLGym: executes the statement from which the question was generated."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from agentgym_gym.envs.sqlgym import SQLGYM, Query
from agentgym_servers._frame.solution_oracle import SolutionOracle
from agentgym_servers.sqlgym._world import world_of

if TYPE_CHECKING:
    from agentgym_gym.actions import Action

__all__ = ["SQLGymOracle"]

_TABLE = re.compile(r"(?:FROM|JOIN) (\w+)")
_COLUMN = re.compile(r"T\d\.(\w+)")


class SQLGymOracle(SolutionOracle):
    """Plays the solutions of this project's own server."""

    def __init__(self) -> None:
        super().__init__(SQLGYM, lambda seed, task_id: [Query(world_of(seed).task(task_id).sql)])

    def explain(self, action: Action, observation: str, info: dict[str, Any]) -> str:
        """Name the tables and columns of the statement, in its order."""
        tables, columns = (", ".join(dict.fromkeys(each.findall(str(action)))) for each in (_TABLE, _COLUMN))
        return f"I need the tables: {tables}. Their columns: {columns or 'none'}."
