"""The data types of a shop: products, goals, and a world with both."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

__all__ = ["PATH_MARK", "Goal", "Goals", "Product", "RequiredOption", "Review", "ShopWorld"]


PATH_MARK = "\u203a"
"""The separator between the parts of a category, as in the official files."""


@dataclass(frozen=True, slots=True)
class Review:
    """A customer's review of a product.

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
        asin: Its unique number in capitals, which identifies it in clicks.
        name: Its title.
        query: A search that returns it among others, in lower case.
        path: Its category from the widest to the narrowest part, separated by `PATH_MARK`.
        attributes: Its attributes, in lower case.
        options: The values of each option, in lower case, by the option's name.
        description: The text of its page Description.
        features: The lines of its page Features.
        price: Its price in dollars, without surcharges of options.
        price_tag: The price as displayed on its page.
        extras: The surcharge of a value in dollars, by the option's name and the value.
        rating: The mean of the stars as displayed on its page.
        reviews: Its reviews.
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
        """Return the price in dollars with the chosen values, by option; exact to the cent."""
        return round(self.price + sum(self.extras.get(each, 0.0) for each in chosen.items()), 2)

    @property
    def text(self) -> str:
        """The text for the search index, made of the same parts as on AgentGym's server."""
        options = ", and ".join(f"{name}: {', '.join(values)}" for name, values in self.options.items())
        return " ".join([self.name, self.description, *self.features[:1], options])


@dataclass(frozen=True, slots=True)
class RequiredOption:
    """A value of an option that a task requires.

    Attributes:
        value: The value, in lower case.
        name: The option's name; None in instructions written by people, which list values only.
    """

    value: str
    name: str | None = None


@dataclass(frozen=True, slots=True)
class Goal:
    """The purchase that a task requires.

    Attributes:
        instruction: The instruction.
        product: The product from which the task was generated. Others that match equally get the same reward.
        attributes: The required attributes.
        options: The required options.
        price_limit: The maximum price, in dollars.
    """

    instruction: str
    product: Product
    attributes: tuple[str, ...]
    options: tuple[RequiredOption, ...]
    price_limit: float


class Goals(Protocol):
    """Goals by the ids of their tasks, from 0; negative ids count from the end."""

    def __len__(self) -> int:
        """Return the number of goals."""

    def __getitem__(self, task: int, /) -> Goal:
        """Return the goal of a task."""


@dataclass(frozen=True)
class ShopWorld:
    """A shop and its tasks.

    Attributes:
        products: All products.
        goals: The goal of each task, by its id.
    """

    products: Sequence[Product]
    goals: Goals
