"""The oracle of SearchQA: searches twice, by what it knows of the world of this project's own server."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agentgym_gym.envs.searchqa import Answer, Search
from agentgym_gym.oracles._own_world import seed_of
from agentgym_gym.servers.searchqa.world import world

if TYPE_CHECKING:
    import gymnasium

    from agentgym_gym.actions import Action

__all__ = ["SearchQAOracle"]


class SearchQAOracle:
    """Searches for what the question names, then for what that names, and gives the answer."""

    name = "oracle"
    blocking = False

    def __init__(self) -> None:
        self._actions: list[Action] = []

    def reset(self, env: gymnasium.Env[str, Any], observation: str, info: dict[str, Any]) -> None:
        """Look the solution of the task up."""
        solution = world(seed_of(info, "SearchQA")).solution(info["task_id"])
        self._actions = [*map(Search, solution.searches), Answer(solution.answer)]

    def act(self, observation: str, info: dict[str, Any]) -> Action | None:
        """Return the next action of the solution; None after the last."""
        return self._actions.pop(0) if self._actions else None
