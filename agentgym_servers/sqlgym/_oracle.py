"""The oracle of SQLGym: executes the statement from which the question was generated."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

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
        super().__init__(SQLGYM, _solution)


def _solution(seed: int, task_id: int) -> list[tuple[Action, str]]:
    """Return the statement; its thought names its tables and columns, in their order."""
    sql = world_of(seed).task(task_id).sql
    tables, columns = (", ".join(dict.fromkeys(each.findall(sql))) for each in (_TABLE, _COLUMN))
    return [(Query(sql), f"I need the tables: {tables}. Their columns: {columns or 'none'}.")]
