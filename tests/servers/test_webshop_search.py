"""The search of the shop, on folders of a few products."""

from __future__ import annotations

import json
import re

import pytest

from clock import cpu_seconds
from local_game import LocalGame

TEXTS = [
    "a red mug",
    "Blue Mugs, for tea",
    "a red lamp",
    "glass of tea",
    "caf\u00e9 cr\u00e8me",
    "the red mug",
]
MOST_RESULTS = 50
MOST_WORDS = 64


def serve(folder, texts):
    """Return the game of a shop with a product for each text."""
    products = [
        {
            "asin": f"N{number:09}",
            "name": text,
            "query": "",
            "product_category": "",
            "full_description": "",
            "small_description": [],
            "pricing": "$1",
            "customization_options": "",
        }
        for number, text in enumerate(texts)
    ]
    wish = {"attributes": ["x"], "instruction": "Find it", "instruction_attributes": ["x"]}
    (folder / "items_shuffle.json").write_text(json.dumps(products))
    (folder / "items_ins_v2.json").write_text(json.dumps({"N000000000": wish}))
    game = LocalGame("WebShop", data=folder)
    game.reset(0)
    return game


def found(game, keywords):
    """Return the numbers of all products that a search finds, in its order."""
    page = game.step(f"search[{keywords}]").observation
    numbers: list[int] = []
    while on_page := [int(asin) for asin in re.findall(r"\[SEP\] N(\d{9}) \[SEP\]", page)]:
        numbers += on_page
        page = game.step("click[next >]").observation
    assert f"(Total results: {len(numbers)})" in page
    return numbers


@pytest.fixture(scope="module")
def few(tmp_path_factory):
    with serve(tmp_path_factory.mktemp("few"), TEXTS) as game:
        yield game


@pytest.fixture(scope="module")
def shop():
    with LocalGame("WebShop") as game:
        game.reset(0)
        yield game


@pytest.mark.parametrize(
    ("keywords", "numbers"),
    [
        ("red mug", [0, 5, 2, 1]),  # 0 and 5 are as good: the first comes first
        ("MUGS", [0, 5, 1]),  # capitals and the plural do not matter
        ("lamp, lamp. lamp!", [2]),
        ("glass", [3]),
        ("caf\u00e9", [4]),
        ("the a of", []),  # function words
        ("unknown", []),
        ("\x00 \ud800 \U0001f600", []),
        ("<r>", []),
        ("red unknown", [0, 2, 5]),
    ],
)
def test_it_ranks_by_shared_words(few, keywords, numbers):
    assert found(few, keywords) == numbers


def test_the_order_of_the_keywords_does_not_matter(shop):
    words = ["waterproof", "hiking", "boots", "memory", "foam", "rainy", "days"]
    pages = [shop.step(f"search[{' '.join(each)}]") for each in (words, reversed(words))]
    assert pages[0] == pages[1]


def test_there_are_fifty_results_at_most_and_the_first_of_the_shop_among_equals(tmp_path):
    with serve(tmp_path, ["other", *["same words"] * 200]) as game:
        assert found(game, "same") == list(range(1, MOST_RESULTS + 1))


def test_a_text_may_have_no_words(tmp_path):
    with serve(tmp_path, ["the", "!"]) as game:
        assert found(game, "the") == []


def test_only_the_first_words_are_searched(tmp_path):
    words = [f"w{number}" for number in range(MOST_WORDS + 1)]
    with serve(tmp_path, words) as game:
        assert found(game, " ".join(words)) == list(range(MOST_RESULTS))
        assert found(game, " ".join([*words[1:], words[0]])) == list(range(1, MOST_RESULTS + 1))


@pytest.mark.parametrize(
    "keywords", ["color size red " * 65_000, "a" * 1_000_000, "\u00e9 " * 100_000, "x y " * 9]
)
def test_any_search_is_quick(shop, keywords):
    assert cpu_seconds(lambda: shop.step(f"search[{keywords}]"), enough=0.1) <= 0.1
