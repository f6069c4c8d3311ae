"""The oracle of Academia: plays the solutions of this project's own server."""

from __future__ import annotations

from agentgym_gym.envs.academia import ACADEMIA
from agentgym_gym.oracles._solution import SolutionOracle
from agentgym_gym.servers.academia.world import tasks_of

__all__ = ["AcademiaOracle"]


class AcademiaOracle(SolutionOracle):
    """Loads the networks, looks up what the question is about, and gives the answer."""

    def __init__(self) -> None:
        super().__init__(ACADEMIA, lambda seed, task_id: tasks_of(seed)[task_id].solution)
