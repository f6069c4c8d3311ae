"""The oracle of WebShop: plays the solutions of a generated shop."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentgym_gym.envs.webshop import WEBSHOP, Click, Search
from agentgym_servers._frame.solution_oracle import SolutionOracle
from agentgym_servers.webshop._world import solution, world_of

if TYPE_CHECKING:
    from agentgym_gym.actions import Action
    from agentgym_servers.webshop._products import World

__all__ = ["WebShopOracle", "plan"]


class WebShopOracle(SolutionOracle):
    """Searches for the product by its title, clicks it and its options, and buys it."""

    def __init__(self) -> None:
        super().__init__(WEBSHOP, lambda seed, task_id: [(a, "") for a in plan(world_of(seed), task_id)])


def plan(world: World, task: int) -> list[Action]:
    """Return the actions that win a task of a generated world."""
    wins = solution(world, task)
    return [Search(wins.keywords), *map(Click, (wins.asin.lower(), *wins.options, "buy now"))]
