"""The oracle of Weather: plays the solutions of this project's own server."""

from __future__ import annotations

from agentgym_gym.envs.weather import WEATHER
from agentgym_servers._frame.solution_oracle import ToolOracle
from agentgym_servers.weather._world import world_of

__all__ = ["WeatherOracle"]


class WeatherOracle(ToolOracle):
    """Makes the calls that find the answer, and submits it."""

    def __init__(self) -> None:
        super().__init__(WEATHER, world_of)
