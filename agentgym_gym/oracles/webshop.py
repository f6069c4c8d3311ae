"""The oracle of WebShop: buys what the task was made of, in a shop that this project made."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from agentgym_gym.envs.webshop import Click, Search
from agentgym_gym.oracles._own_world import seed_of
from agentgym_gym.servers.webshop.world import made_world, solution

if TYPE_CHECKING:
    import gymnasium

    from agentgym_gym.actions import Action
    from agentgym_gym.servers.webshop.products import World

__all__ = ["WebShopOracle", "plan"]


class WebShopOracle:
    """Searches for the product by its title, clicks it and its options, and buys it."""

    name = "oracle"
    blocking = False

    def __init__(self) -> None:
        self._left: list[Action] = []  # the next action is the last

    def reset(self, env: gymnasium.Env[str, Any], observation: str, info: dict[str, Any]) -> None:
        """Look the task up.

        Raises:
            BadOption: It is not a task of this project's own server, made from a seed.
        """
        self._left = plan(_world(seed_of(info, "WebShop")), info["task_id"])[::-1]

    def act(self, observation: str, info: dict[str, Any]) -> Action | None:
        """Return the next action of the plan; None when all of it is played."""
        return self._left.pop() if self._left else None


def plan(world: World, task: int) -> list[Action]:
    """Return the actions that win a task of a made world."""
    wins = solution(world, task)
    return [Search(wins.keywords), *map(Click, (wins.asin.lower(), *wins.options, "buy now"))]


@lru_cache(maxsize=2)
def _world(seed: int) -> World:
    """Return the world of a seed, which all oracles of a process share."""
    return made_world(seed)
