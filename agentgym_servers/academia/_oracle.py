"""The oracle of Academia: plays the solutions of this project's own server."""

from __future__ import annotations

from agentgym_gym.envs.academia import ACADEMIA
from agentgym_servers._frame.solution_oracle import ToolOracle
from agentgym_servers.academia._world import world_of

__all__ = ["AcademiaOracle"]


class AcademiaOracle(ToolOracle):
    """Loads the networks, looks up the papers or authors of the question, and gives the answer."""

    def __init__(self) -> None:
        super().__init__(ACADEMIA, world_of)
