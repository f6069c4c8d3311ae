"""The oracle of Movie: plays the solutions of this project's own server."""

from __future__ import annotations

from agentgym_gym.envs.movie import MOVIE
from agentgym_servers._frame.solution_oracle import ToolOracle
from agentgym_servers.movie._world import world_of

__all__ = ["MovieOracle"]


class MovieOracle(ToolOracle):
    """Makes the calls that find the answer, and submits it."""

    def __init__(self) -> None:
        super().__init__(MOVIE, world_of)
