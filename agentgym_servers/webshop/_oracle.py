"""The oracle of WebShop: finds the products of a generated shop by the words of the goals."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agentgym_gym.envs.webshop import WEBSHOP, Click, Search
from agentgym_servers._frame.solution_oracle import SolutionOracle
from agentgym_servers.webshop._world import solution, world_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from agentgym_gym.actions import Action
    from agentgym_servers.webshop._products import Goal, ShopWorld

__all__ = ["WebShopOracle", "plan"]

_NEXT_PAGES = 3  # of the results of the first search: another one, three options and the purchase may follow


class WebShopOracle(SolutionOracle):
    """Searches with the words of the goal, clicks the product and its options, and buys it."""

    def __init__(self) -> None:
        super().__init__(WEBSHOP, lambda seed, task_id: plan(world_of(seed), task_id, lambda: self._page))
        self._page = ""

    def act(self, observation: str, info: dict[str, Any]) -> Action | None:
        """Return the next action; None after the purchase."""
        self._page = observation
        return super().act(observation, info)


def plan(world: ShopWorld, task: int, page: Callable[[], str]) -> Iterator[tuple[Action, str]]:
    """Yield the actions that win a task of a generated world, each with the thought before it.

    Args:
        world: The world.
        task: The task's id.
        page: Returns the page after the last action.
    """
    goal, wins = world.goals[task], solution(world, task)
    yield Search(wins.keywords), "I search with the words of the goal: product, qualities and options."
    for _ in range(_NEXT_PAGES):
        if wins.asin in page() or "Next >" not in page():
            break
        yield Click("next >"), "No product on this page fits well. I look at the next page."
    if wins.asin not in page():
        yield Search(goal.product.name), "No result fits. I try a title."
    yield Click(wins.asin.lower()), _match(goal)
    choices = [f"{option.name} {option.value}" for option in goal.options]
    for number, value in enumerate(wins.options):
        yield Click(value), f"Still to choose: {', '.join(choices[number:])}. Then I buy it."
    yield (
        Click("buy now"),
        "All options are chosen. I buy it." if choices else "No options to choose. I buy it.",
    )


def _match(goal: Goal) -> str:
    """Return why the product fits, by what the results show."""
    product = goal.product
    shown = [product.query, *(each for each in goal.attributes if each in product.name.lower())]
    return f"{product.asin} fits: {', '.join(shown)}, ${product.price}, less than {goal.price_limit:.0f}."
