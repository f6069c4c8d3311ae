"""The reward of a purchase, as in the WebShop paper and on AgentGym's server.

The formula is equation 1 of Yao et al., "WebShop: Towards Scalable Real-World Web Interaction with Grounded
Language Agents", arXiv:2207.01206. It leaves to heuristics when two titles, attributes or options match;
these are in ``web_agent_site/engine/goal.py`` of the WebShop that AgentGym ships
(github.com/WooooDyy/AgentGym at 3ef9235), called goal.py below. docs/servers.md describes them. One thing
differs: goal.py compares the nouns of two titles, which a language model of spaCy finds, and this module
compares all words except numbers and `_FUNCTION` words.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from rapidfuzz import fuzz

from agentgym_servers._frame.data_files import read_json
from agentgym_servers.webshop._products import PATH_MARK, Goal, Product, RequiredOption

__all__ = ["Reward", "attribute_matches", "option_matches", "reward", "title_score", "type_reward"]

_ALIKE = 85  # goal.py: two texts match if their token set ratio, as an integer, is greater
_SHARED_PARTS = 2  # goal.py: two categories match if they share this number of parts
_SAME_TITLE, _OTHER_TITLE = 0.2, 0.1  # the paper and goal.py: thresholds of the title score
_NO_TITLE = 0.2  # goal.py: the score of any title if the goal's has nothing to compare

# goal.py compares texts by thefuzz 0.19, which deletes these characters before it splits a text into words.
_DELETED = dict.fromkeys(range(128, 256))
_NOT_IN_WORDS = re.compile(r"\W")

_WORD = re.compile(r"[^\W\d_]+(?:'[^\W\d_]+)?")
_FUNCTION = frozenset(
    ("a", "an", "and", "as", "at", "by", "for", "from", "in", "is", "of", "on", "or", "the", "to", "with")
)

# goal.py reduces an option to the first colour that it contains, in alphabetical order. The colours are those
# of its normalize.py, with "dark" and "light" among them.
_COLORS = tuple(read_json("webshop", "colors.json"))


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


def option_matches(chosen: Iterable[str], required: Iterable[RequiredOption]) -> int:
    """Return the number of required options that are chosen: ``get_option_reward`` of goal.py.

    Any chosen value may match, not only one of the same option.
    """
    values = [_color(value) for value in chosen]
    return sum(any(_alike(value, text) for value in values) for text in map(_required_text, required))


def _required_text(option: RequiredOption) -> str:
    """Return the text with which the chosen values are compared.

    goal.py keeps the option's name: it compares a pair of name and value as Python prints it, and reduces the
    pair to a colour only if the value is that colour and nothing else. Therefore "x-large" does not match the
    size "large", but "large" matches the size "x-large", since all its words occur there.
    """
    if option.name is None:
        return _color(option.value)
    pair = (option.name, option.value)
    return next((color for color in _COLORS if color in pair), str(pair))


def _alike(one: str, other: str) -> bool:
    return round(fuzz.token_set_ratio(one, other, processor=_normalized)) > _ALIKE


def _normalized(text: str) -> str:
    """Return a text without the characters that do not count, in lower case."""
    return _NOT_IN_WORDS.sub(" ", text.translate(_DELETED)).lower().strip()


def _color(value: str) -> str:
    """Return the colour that a value contains; the value itself if it contains none."""
    return next((color for color in _COLORS if color in value), value)


def _parts(path: str) -> set[str]:
    return {part.strip() for part in path.split(PATH_MARK)}


def _words(title: str) -> set[str]:
    return set(_WORD.findall(title.lower())) - _FUNCTION
