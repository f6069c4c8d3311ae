"""The oracle of SQLGym: executes the statement from which the question was made."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agentgym_gym.envs.sqlgym import Query
from agentgym_gym.oracles._own_world import seed_of
from agentgym_gym.servers.sqlgym.world import world_of

if TYPE_CHECKING:
    import gymnasium

    from agentgym_gym.actions import Action

__all__ = ["SQLGymOracle"]


class SQLGymOracle:
    """Knows the answers to the questions of this project's own server."""

    name = "oracle"
    blocking = False

    def __init__(self) -> None:
        self._sql = ""

    def reset(self, env: gymnasium.Env[str, Any], observation: str, info: dict[str, Any]) -> None:
        """Look up the statement of the task.

        Raises:
            BadOption: The task is none of this project's own server, made from a seed.
        """
        self._sql = world_of(seed_of(info, "SQLGym")).task(info["task_id"]).sql

    def act(self, observation: str, info: dict[str, Any]) -> Action | None:
        """Return the statement."""
        return Query(self._sql)
