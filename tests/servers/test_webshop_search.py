"""The search of the shop."""

from __future__ import annotations

import pytest

from agentgym_servers.webshop._search import MAX_RESULTS, MAX_WORDS, Index
from agentgym_servers.webshop._world import world_of
from clock import cpu_seconds

TEXTS = [
    "a red mug",
    "Blue Mugs, for tea",
    "a red lamp",
    "glass of tea",
    "caf\u00e9 cr\u00e8me",
    "the red mug",
]


@pytest.fixture(scope="module")
def index():
    return Index(TEXTS)


@pytest.fixture(scope="module")
def shop():
    return Index(product.text for product in world_of(0).products)


@pytest.mark.parametrize(
    ("keywords", "found"),
    [
        ("red mug", [0, 5, 2, 1]),  # 0 and 5 are as good: the first comes first
        ("MUGS", [0, 5, 1]),  # capitals and the plural do not matter
        ("lamp, lamp. lamp!", [2]),
        ("glass", [3]),
        ("caf\u00e9", [4]),
        ("the a of", []),  # words that say nothing
        ("unknown", []),
        ("", []),
        ("\x00 \ud800 \U0001f600", []),
        ("<r>", []),
        ("red unknown", [0, 2, 5]),
    ],
)
def test_it_ranks_by_shared_words(index, keywords, found):
    assert list(index.search(keywords)) == found


def test_the_order_of_the_keywords_does_not_matter(shop):
    words = ["waterproof", "hiking", "boots", "memory", "foam", "rainy", "days"]
    assert shop.search(" ".join(words)) == shop.search(" ".join(reversed(words)))


def test_there_are_fifty_results_at_most_and_the_first_of_the_shop_among_equals():
    many = Index(["same words"] * 200)
    assert list(many.search("words")) == list(range(MAX_RESULTS))
    assert list(Index(["other", *["same words"] * 60]).search("same")) == list(range(1, MAX_RESULTS + 1))


def test_no_texts_or_empty_ones():
    assert list(Index([]).search("x")) == []
    assert list(Index(["", "the"]).search("the")) == []


def test_so_many_words_are_looked_for():
    words = [f"w{number}" for number in range(MAX_WORDS + 1)]
    index = Index(words)
    assert len(index.search(" ".join(words))) == MAX_RESULTS
    assert list(index.search(" ".join([*words[1:], words[0]]))) == list(range(1, MAX_RESULTS + 1))


@pytest.mark.parametrize(
    "keywords", ["color size red " * 70_000, "a" * 1_000_000, "\u00e9 " * 200_000, "x y " * 9]
)
def test_a_search_is_quick_whatever_it_is(shop, keywords):
    assert cpu_seconds(lambda: shop.search(keywords), enough=0.05) <= 0.05
