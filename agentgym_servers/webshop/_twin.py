"""The twin of a generated shop: the same products and tasks, worded and priced as on AgentGym's server.

Instructions begin with "Find me" and list the options in alphabetical order. Products have no reviews.
Options do not change the price: as on AgentGym's server, a product with a range of prices has one price
within it. The required attributes and options stay the same, so the shop's solutions win the twin too.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

from agentgym_servers._frame.draw import Draw
from agentgym_servers.webshop._products import Goal, Product, ShopWorld
from agentgym_servers.webshop._world import TASKS, instruction, world_of

__all__ = ["twin_of"]

_OPENING = "Find me"
_COSTS = " Each "  # the beginning of each sentence of a description that names the price of an option
_LIMITS = (20.0, 30.0, 40.0)  # dollars above the last multiple of ten, as on AgentGym's server


@lru_cache(maxsize=2)
def twin_of(seed: int) -> ShopWorld:
    """Return the twin of the world of a seed; cached."""
    world = world_of(seed)
    products = {product.asin: _product(seed, product) for product in world.products}
    goals: list[Goal] = []
    seen: set[str] = set()
    for task in range(TASKS):
        original = world.goals[task]
        product = products[original.product.asin]
        for above in Draw("webshop", seed, "twin", task).shuffled(_LIMITS):
            goal = _goal(original, product, above)
            if goal.instruction not in seen:
                break
        seen.add(goal.instruction)
        goals.append(goal)
    return ShopWorld(tuple(products.values()), tuple(goals))


def _product(seed: int, product: Product) -> Product:
    dearest = {
        name: max(values, key=lambda v: product.extras[name, v]) for name, values in product.options.items()
    }
    cents = [round(100 * price) for price in (product.price, product.price_with(dearest))]
    return replace(
        product,
        description=product.description.partition(_COSTS)[0],
        price=Draw("webshop", seed, "price", product.asin).between(*cents) / 100,
        extras={},
        rating="N.A.",
        reviews=(),
    )


def _goal(goal: Goal, product: Product, above: float) -> Goal:
    """Return a goal for the twin of its product, with a price limit."""
    options = tuple(sorted(goal.options, key=lambda option: option.name or ""))
    price_limit = product.price // 10 * 10 + above
    chosen = {option.name or "": option.value for option in options}
    return Goal(
        instruction=instruction(_OPENING, product, goal.attributes, chosen, price_limit),
        product=product,
        attributes=goal.attributes,
        options=options,
        price_limit=price_limit,
    )
