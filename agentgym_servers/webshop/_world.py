"""The world of a seed: 1,000 products, and 6,910 tasks to buy one of them; needs only the standard library.

Each task requires some attributes of one product, a value of each of its options, and a maximum price in
dollars. Each product has six or seven tasks.
"""

from __future__ import annotations

import string
from dataclasses import dataclass
from functools import lru_cache

from agentgym_servers._frame.data_files import read_json
from agentgym_servers._frame.draw import Draw
from agentgym_servers.webshop._departments import DEPARTMENTS, Department, ProductOption
from agentgym_servers.webshop._products import PATH_MARK, Goal, Product, RequiredOption, Review, ShopWorld

__all__ = ["PRODUCTS", "TASKS", "Solution", "instruction", "solution", "world_of"]

PRODUCTS = 1_000
"""The number of products of a generated world."""

TASKS = 6_910
"""The number of tasks of a generated world: the same as on AgentGym's server."""

_WORDS = read_json("webshop", "words.json")
_DEPARTMENTS = {department.name: department for department in DEPARTMENTS}
_ASIN_LETTERS = string.digits + string.ascii_uppercase
_TRIES = 100  # to draw something new; each attempt is very likely to succeed


@dataclass(frozen=True)
class Solution:
    """The actions that win a task.

    Attributes:
        keywords: The search, in words of the goal; the product is among its results, mostly the first ten.
        asin: The product to click.
        options: The values to click on its page.
    """

    keywords: str
    asin: str
    options: tuple[str, ...]


@lru_cache(maxsize=2)
def world_of(seed: int) -> ShopWorld:
    """Return the world of a seed; cached."""
    names = Draw("webshop", seed, "names").some(
        [f"{brand} {line}" for brand in _WORDS["brands"] for line in _WORDS["lines"]], PRODUCTS
    )
    asins = _asins(seed)
    kinds = [(department, number) for department in DEPARTMENTS for number in range(len(department.kinds))]
    products = tuple(
        _product(Draw("webshop", seed, "product", number), asins[number], name, *kinds[number % len(kinds)])
        for number, name in enumerate(names)
    )
    return ShopWorld(products, _goals(seed, products))


def solution(world: ShopWorld, task: int) -> Solution:
    """Return the solution of a task of a generated world.

    Args:
        world: The world.
        task: The task's id, from 0 to `TASKS` - 1.
    """
    goal = world.goals[task]
    options = tuple(option.value for option in goal.options)
    words = sorted((goal.product.query, *goal.attributes, *options), key=goal.instruction.index)
    return Solution(" ".join(words), goal.product.asin, options)


def _asins(seed: int) -> list[str]:
    draw = Draw("webshop", seed, "asins")
    drawn: dict[str, None] = {}
    for _ in range(_TRIES * PRODUCTS):
        drawn["B0" + "".join(draw.one(_ASIN_LETTERS) for _ in range(8))] = None
        if len(drawn) == PRODUCTS:
            break
    return list(drawn)


def _product(draw: Draw, asin: str, name: str, department: Department, number: int) -> Product:
    kind = department.kinds[number]
    qualities = draw.some(department.qualities, draw.between(2, 3))
    parts = draw.some(department.parts, draw.between(2, 3))
    uses = draw.some(department.uses, draw.between(1, 2))
    attributes = (*qualities, *parts, *uses)
    choices = (
        [ProductOption("color", tuple(draw.some(_WORDS["colors"], draw.between(3, 5))))]
        if draw.chance(0.85)
        else []
    )
    for choice in department.options:
        if draw.chance(0.85):
            kept = sorted(draw.some(range(len(choice.values)), draw.between(2, len(choice.values))))
            choices.append(ProductOption(choice.name, tuple(choice.values[i] for i in kept), choice.cents))
    cents = draw.between(kind.dollars[0] * 100, kind.dollars[1] * 100 - 1)
    most = sum((len(choice.values) - 1) * choice.cents for choice in choices)
    reviews = tuple(Review(*review) for review in draw.some(_WORDS["reviews"], draw.between(0, 3)))
    title = ", ".join(
        [f"{name} {kind.noun}", qualities[0], parts[0], draw.one([*qualities[1:], *parts[1:], *uses])]
    )
    return Product(
        asin=asin,
        name=string.capwords(title),
        query=kind.noun,
        path=f" {PATH_MARK} ".join([department.name, *kind.path]),
        attributes=attributes,
        options={choice.name: choice.values for choice in choices},
        description=_description(name, kind.noun, uses, choices),
        features=tuple(
            f"{each.capitalize()}, {end}"
            for each, end in zip(attributes, draw.some(_WORDS["feature_ends"], len(attributes)), strict=True)
        ),
        price=cents / 100,
        price_tag=f"${cents / 100} to ${(cents + most) / 100}" if most else f"${cents / 100}",
        extras={
            (choice.name, value): place * choice.cents / 100
            for choice in choices
            for place, value in enumerate(choice.values)
        },
        rating=f"{sum(review.stars for review in reviews) / len(reviews):.1f}" if reviews else "N.A.",
        reviews=reviews,
    )


def _description(name: str, noun: str, uses: list[str], choices: list[ProductOption]) -> str:
    costs = [
        f"Each {choice.name} costs ${choice.cents / 100:.2f} more than the one listed before it."
        for choice in choices
        if choice.cents
    ]
    return " ".join([f"{string.capwords(noun)} of the series {name}, made for {' and '.join(uses)}.", *costs])


def _goals(seed: int, products: tuple[Product, ...]) -> tuple[Goal, ...]:
    goals: list[Goal] = []
    seen: set[str] = set()
    order: list[Product] = []
    for task in range(TASKS):
        if not order:  # all products once, then all of them again in another order
            order = Draw("webshop", seed, "order", task).shuffled(products)
        product = order.pop()
        draw = Draw("webshop", seed, "task", task)
        for _ in range(_TRIES):
            goal = _goal(draw, product)
            if goal.instruction not in seen:
                break
        seen.add(goal.instruction)
        goals.append(goal)
    return tuple(goals)


def _goal(draw: Draw, product: Product) -> Goal:
    drawn = set(draw.some(product.attributes, draw.between(2, 4)))
    attributes = tuple(each for each in product.attributes if each in drawn)
    options = {name: draw.one(values) for name, values in product.options.items()}
    # As on AgentGym's server, whose limits are multiples of ten: one of the three after the next.
    price_limit = 10.0 * (int(product.price_with(options) // 10) + draw.between(2, 4))
    return Goal(
        instruction=instruction(draw.one(_WORDS["openings"]), product, attributes, options, price_limit),
        product=product,
        attributes=attributes,
        options=tuple(RequiredOption(value, name) for name, value in options.items()),
        price_limit=price_limit,
    )


def instruction(
    opening: str,
    product: Product,
    attributes: tuple[str, ...],
    options: dict[str, str],
    price_limit: float,
) -> str:
    """Return the instruction to buy a product of a generated world.

    Args:
        opening: The first words.
        product: The product.
        attributes: The required attributes.
        options: The required values, by option.
        price_limit: The maximum price, in dollars.
    """
    department = _DEPARTMENTS[product.path.partition(f" {PATH_MARK} ")[0]]
    qualities = ", ".join(each for each in attributes if each in department.qualities)
    parts = ", ".join(each for each in attributes if each in department.parts)
    uses = ", ".join(each for each in attributes if each in department.uses)
    chosen = ", and ".join(f"{name}: {value}" for name, value in options.items())
    return "".join(
        [
            opening,
            f" {qualities}" if qualities else "",
            f" {product.query}",
            f" with {parts}" if parts else "",
            f" for {uses}" if uses else "",
            f" with {chosen}" if chosen else "",
            f", and price lower than {price_limit:.2f} dollars",
        ]
    )
