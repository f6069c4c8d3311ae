"""What a shop has and what is asked for: products, goals, and a world of both."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

__all__ = ["PATH_MARK", "Goal", "Goals", "Product", "Review", "World"]


PATH_MARK = "\u203a"
"""Stands between the parts of a category, as in the official files."""


@dataclass(frozen=True, slots=True)
class Review:
    """What a customer says of a product.

    Attributes:
        title: Its title.
        stars: From 1 to 5.
        text: The text.
    """

    title: str
    stars: int
    text: str


@dataclass(frozen=True, slots=True)
class Product:
    """A product of the shop.

    Attributes:
        asin: Its number, by which it is clicked; in capitals, and no other product has it.
        name: Its title.
        query: The search that it is one of the answers to, in lower case.
        path: Its category from the widest to the narrowest, with `PATH_MARK` between.
        attributes: What is true of it, in lower case.
        options: The values of each option, in lower case, by the option's name.
        description: The text of its page Description.
        features: The lines of its page Features.
        price: What it costs in dollars, without what the options add.
        price_tag: The price as its page shows it.
        extras: What a value adds to the price in dollars, by the option's name and the value.
        rating: The mean of the stars as its page shows it.
        reviews: What customers say of it.
    """

    asin: str
    name: str
    query: str
    path: str
    attributes: tuple[str, ...]
    options: Mapping[str, tuple[str, ...]]
    description: str
    features: tuple[str, ...]
    price: float
    price_tag: str
    extras: Mapping[tuple[str, str], float] = field(default_factory=dict)
    rating: str = "N.A."
    reviews: tuple[Review, ...] = ()

    def price_with(self, chosen: Mapping[str, str]) -> float:
        """Return what it costs in dollars with the values that are chosen, by option; exact to the cent."""
        return round(self.price + sum(self.extras.get(each, 0.0) for each in chosen.items()), 2)

    @property
    def text(self) -> str:
        """What a search looks through, the same parts as on AgentGym's server."""
        options = ", and ".join(f"{name}: {', '.join(values)}" for name, values in self.options.items())
        return " ".join([self.name, self.description, *self.features[:1], options])


@dataclass(frozen=True, slots=True)
class Goal:
    """What is asked for in a task.

    Attributes:
        instruction: The text of it.
        product: The product that it was made of. Any other that fits as well is as good.
        attributes: The attributes that are asked for.
        options: The values of options that are asked for.
        price_limit: The most that it may cost, in dollars.
    """

    instruction: str
    product: Product
    attributes: tuple[str, ...]
    options: tuple[str, ...]
    price_limit: float


class Goals(Protocol):
    """Goals by the ids of their tasks, from 0; ids below 0 count from the end."""

    def __len__(self) -> int:
        """Return how many there are."""

    def __getitem__(self, task: int, /) -> Goal:
        """Return the goal of a task."""


@dataclass(frozen=True)
class World:
    """A shop and its tasks.

    Attributes:
        products: All products.
        goals: The goal of each task, by its id.
    """

    products: Sequence[Product]
    goals: Goals
