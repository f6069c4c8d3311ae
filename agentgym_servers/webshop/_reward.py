"""The reward of a purchase, as in the WebShop paper and on AgentGym's server.

The formula is equation 1 of Yao et al., "WebShop: Towards Scalable Real-World Web Interaction with Grounded
Language Agents", arXiv:2207.01206. It leaves to heuristics when two titles, attributes or options match;
these are in ``web_agent_site/engine/goal.py`` of the WebShop that AgentGym ships
(github.com/WooooDyy/AgentGym at 3ef9235), called goal.py below. One thing differs: goal.py compares the nouns
of two titles, which a language model of spaCy finds. This module compares all words except numbers and
`_FUNCTION` words.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from rapidfuzz import fuzz, utils

from agentgym_servers.webshop._products import PATH_MARK, Goal, Product

__all__ = ["Reward", "attribute_matches", "option_matches", "reward", "title_score", "type_reward"]

_ALIKE = 85  # goal.py: two texts match if their token set ratio, as an integer, is greater
_SHARED_PARTS = 2  # goal.py: two categories match if they share this number of parts
_SAME_TITLE, _OTHER_TITLE = 0.2, 0.1  # the paper and goal.py: thresholds of the title score
_NO_TITLE = 0.2  # goal.py: the score of any title if the goal's has nothing to compare

_WORD = re.compile(r"[^\W\d_]+(?:'[^\W\d_]+)?")
_FUNCTION = frozenset(
    ("a", "an", "and", "as", "at", "by", "for", "from", "in", "is", "of", "on", "or", "the", "to", "with")
)

# goal.py treats two options as the same if both contain the same colour, the first match of a list. This list
# is our own.
_COLORS = (
    *("black", "white", "turquoise", "blue", "navy", "teal", "green", "olive", "mint", "lime", "yellow"),
    *(
        "mustard",
        "orange",
        "coral",
        "peach",
        "crimson",
        "burgundy",
        "maroon",
        "red",
        "pink",
        "rose",
        "purple",
    ),
    *(
        "lavender",
        "violet",
        "brown",
        "beige",
        "khaki",
        "ivory",
        "cream",
        "charcoal",
        "gray",
        "grey",
        "silver",
    ),
    *("copper", "bronze", "gold"),
)


@dataclass(frozen=True)
class Reward:
    """The terms of a reward.

    Attributes:
        type_factor: The match of the kind of product: 0, 0.1, 0.5 or 1.
        attributes: The number of required attributes that the product has.
        options: The number of required options that are chosen.
        price: Whether the price is within the limit.
        of: The number of requirements: the attributes, the options and the price.
    """

    type_factor: float
    attributes: int
    options: int
    price: bool
    of: int

    @property
    def total(self) -> float:
        """The reward, from 0 to 1: arXiv:2207.01206, equation 1."""
        return self.type_factor * ((self.attributes + self.options + self.price) / self.of)


def reward(bought: Product, chosen: Mapping[str, str], goal: Goal) -> Reward:
    """Return the reward of a purchase.

    Args:
        bought: The product.
        chosen: The chosen values, by option.
        goal: The requirements.
    """
    return Reward(
        type_factor=type_reward(bought, goal.product),
        attributes=attribute_matches(bought, goal.attributes),
        options=option_matches(chosen.values(), goal.options),
        price=bought.price_with(chosen) <= goal.price_limit,
        of=len(goal.attributes) + len(goal.options) + 1,
    )


def type_reward(bought: Product, required: Product) -> float:
    """Return the factor for the kind of product: the paper's type reward, ``get_type_reward`` of goal.py.

    It is 0 if the titles share nothing; 0.1 if they share less than 0.1; 0.5 if they share no more than 0.2
    and neither the query nor two parts of the category are the same; else 1.
    """
    score = title_score(bought.name, required.name)
    if score < _OTHER_TITLE:
        return 0.1 if score else 0.0
    same_query = bought.query == required.query
    same_category = len(_parts(bought.path) & _parts(required.path)) >= _SHARED_PARTS
    return 1.0 if same_query or same_category or score > _SAME_TITLE else 0.5


def title_score(bought: str, required: str) -> float:
    """Return the share of words of the required title that the other contains; goal.py counts only nouns."""
    words = _words(required)
    return len(words & _words(bought)) / len(words) if words else _NO_TITLE


def attribute_matches(bought: Product, required: Iterable[str]) -> int:
    """Return the number of required attributes that a product has: ``get_attribute_reward`` of goal.py.

    An attribute counts if it matches one of the product's, or occurs in its title, features or description.
    """
    texts = (bought.name.lower(), " ".join(bought.features).lower(), bought.description.lower())
    return sum(
        any(_alike(own, each) for own in bought.attributes) or any(each in text for text in texts)
        for each in required
    )


def option_matches(chosen: Iterable[str], required: Iterable[str]) -> int:
    """Return the number of required values chosen, for any option: ``get_option_reward`` of goal.py."""
    own = [_color(each) for each in chosen]
    return sum(any(_alike(each, _color(value)) for each in own) for value in required)


def _alike(one: str, other: str) -> bool:
    return round(fuzz.token_set_ratio(one, other, processor=utils.default_process)) > _ALIKE


def _color(value: str) -> str:
    """Return the colour that a value contains; the value itself if it contains none."""
    return next((color for color in _COLORS if color in value), value)


def _parts(path: str) -> set[str]:
    return {part.strip() for part in path.split(PATH_MARK)}


def _words(title: str) -> set[str]:
    return set(_WORD.findall(title.lower())) - _FUNCTION
