"""The oracle of SearchQA: makes the two searches stored with each task of this project's own server."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentgym_gym.envs.searchqa import SEARCHQA, Answer, Search
from agentgym_servers._frame.solution_oracle import SolutionOracle
from agentgym_servers.searchqa._world import world_of

if TYPE_CHECKING:
    from agentgym_gym.actions import Action

__all__ = ["SearchQAOracle"]


class SearchQAOracle(SolutionOracle):
    """Searches for the entity in the question, then for the entity that it leads to, and gives the answer."""

    def __init__(self) -> None:
        super().__init__(SEARCHQA, _solution)


def _solution(seed: int, task_id: int) -> list[tuple[Action, str]]:
    plan = world_of(seed).solution(task_id)
    return list(zip((*map(Search, plan.searches), Answer(plan.answer)), plan.thoughts, strict=True))
