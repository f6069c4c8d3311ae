"""AgentGym's reward of a WebShop purchase, written from its description and independent of the local server.

Equation 1 of arXiv:2207.01206, for a purchase of product y for an instruction about product y*:

    reward = type * (attributes + options + price) / (attributes* + options* + 1)

The numerator counts the required attributes that y has, the required options that were chosen, and 1 if the
price is within the limit; the denominator counts all requirements. The type factor lowers the reward of a
product of another kind. docs/servers.md describes when two texts match.

Products are dictionaries of the official files: ``name``, ``query``, ``product_category`` and so on.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from difflib import SequenceMatcher
from functools import cache
from typing import Any

COLORS = ("black", "blue", "dark", "gold", "gray", "green", "light", "navy", "pink", "red", "rose", "white")
"""The words for colours in the catalogues of the tests, in alphabetical order."""

NOT_COMPARED = {"a", "an", "and", "for", "in", "of", "on", "or", "the", "to", "with"}
"""Words of titles that are not nouns. How nouns are recognised is a documented difference."""


def expected_reward(
    bought: Mapping[str, Any],
    bought_attributes: Sequence[str],
    target: Mapping[str, Any],
    *,
    attributes: Sequence[str],
    options: Mapping[str, str],
    chosen: Mapping[str, str],
    within_limit: bool,
) -> float:
    """Return the reward of a purchase.

    Args:
        bought: The purchased product.
        bought_attributes: Its attributes.
        target: The product of the instruction.
        attributes: The required attributes.
        options: The required values, by the option's name.
        chosen: The chosen values, by the option's name.
        within_limit: Whether the price is at most the limit.
    """
    points = 0
    for attribute in attributes:
        points += has_attribute(bought, bought_attributes, attribute)
    for option in options.items():
        points += any(option_matches(value, option) for value in chosen.values())
    points += within_limit
    return type_factor(bought, target) * (points / (len(attributes) + len(options) + 1))


def type_factor(bought: Mapping[str, Any], target: Mapping[str, Any]) -> float:
    """Return the factor for the kind of product."""
    nouns = title_words(target["name"])
    shared = len(nouns & title_words(bought["name"])) / len(nouns) if nouns else 0.2
    if shared == 0:
        return 0.0
    if shared < 0.1:
        return 0.1
    same_query = bought["query"].strip().lower() == target["query"].strip().lower()
    paths = [{part.strip() for part in each["product_category"].split("\u203a")} for each in (bought, target)]
    alike = same_query or len(set.intersection(*paths)) >= 2 or shared > 0.2
    return 1.0 if alike else 0.5


def title_words(title: str) -> set[str]:
    """Return the words of a title that are compared."""
    return set(re.findall(r"[a-z]+(?:'[a-z]+)?", title.lower())) - NOT_COMPARED


def has_attribute(product: Mapping[str, Any], own: Sequence[str], attribute: str) -> bool:
    """Return whether a product has an attribute, in its list or in one of its texts."""
    if any(similarity(each, attribute) > 85 for each in own):
        return True
    features = " ".join(product["small_description"])
    return any(attribute in text.lower() for text in (product["name"], features, product["full_description"]))


def option_matches(value: str, required: tuple[str, str]) -> bool:
    """Return whether a chosen value counts for a required option, which is a name and a value.

    A chosen value that contains a colour is reduced to it. A required option is reduced only if its whole
    value is a colour; otherwise its name and value are compared together, as Python prints the pair.
    """
    for color in COLORS:
        if color in value:
            value = color
            break
    text = next((color for color in COLORS if color in required), repr(required))
    return similarity(value, text) > 85


@cache
def similarity(one: str, other: str) -> int:
    """Return the similarity of two texts as sets of words, from 0 to 100.

    The best of three comparisons: the shared words with each text, and both texts with each other, where the
    shared words come first and all words are in alphabetical order.
    """
    words = [
        set(re.sub(r"\W", " ", re.sub("[\x80-\xff]", "", text)).lower().split()) for text in (one, other)
    ]
    if not all(words):
        return 0
    both = sorted(words[0] & words[1])
    texts = [" ".join([*both, *sorted(each.difference(both))]) for each in words]
    pairs = [(" ".join(both), texts[0]), (" ".join(both), texts[1]), (texts[0], texts[1])]
    return max(round(100 * SequenceMatcher(None, *pair).ratio()) if all(pair) else 0 for pair in pairs)
