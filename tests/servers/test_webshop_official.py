"""WebShop's own files: small ones of their schema, and the errors of malformed ones."""

from __future__ import annotations

import json
import re
import subprocess
import sys

import pytest

import programs
from agentgym_gym.errors import BadOption, ServerError
from agentgym_gym.local_servers import server_kind
from local_game import LocalGame
from peak_memory import PEAK


def item(asin, **fields):
    """A product as the official files have it, with the fields that are not read."""
    return {
        "asin": asin,
        "name": f"Fine Wool Socks {asin}",
        "category": "fashion",
        "query": " Wool Socks ",
        "product_category": "Clothing \u203a Men \u203a Socks",
        "full_description": "Warm socks.",
        "small_description": ["Machine wash", "Pack of two"],
        "pricing": "$12.50",
        "customization_options": {
            "Size": [{"value": " Small ", "image": None}, {"value": "10/12"}],
            "Color": [{"value": "Red"}, {"value": "Navy Blue", "image": "http://x"}, {"value": "Gray"}],
            "Fit": None,
        },
        "images": ["http://x"],
        "brand": "x",
        "list_price": "",
        "product_information": {},
        **fields,
    }


WISHES = {
    "attributes": ["machine wash", "wool"],
    "instruction": "Find me machine wash men's socks",
    "instruction_attributes": ["machine wash"],
}


@pytest.fixture
def folder(tmp_path):
    """Writes files into a folder: products, wishes, and wishes of people."""

    def write(items, wishes=None, people=None, name="items_shuffle_1000.json"):
        texts = {name: items, "items_ins_v2_1000.json": {"A1": WISHES} if wishes is None else wishes}
        if people is not None:
            texts["items_human_ins.json"] = people
        for file, content in texts.items():
            text = content if isinstance(content, str) else json.dumps(content)
            (tmp_path / file).write_text(text, "utf-8")
        return tmp_path

    return write


def load(folder):
    return server_kind("webshop").app(data=folder)


def shop_of(folder):
    return LocalGame("WebShop", data=folder)


def page_of(game, asin):
    """Return the parts of the page of a product, from its options on."""
    observation = game.play(0, ["search[fine wool socks]", f"click[{asin}]"]).observation
    return observation.split(" [SEP] ")[4:]


def found(game, keywords):
    """Return the products on the first page of a search."""
    return re.findall(r"\[SEP\] (A\d+|nan|B\d+) \[SEP\]", game.play(0, [f"search[{keywords}]"]).observation)


def goals_of(game, tasks):
    return [game.reset(task).goal for task in range(tasks)]


def test_a_product(folder):
    with shop_of(folder([item("A1")])) as game:
        assert page_of(game, "A1") == [
            *("size", "small", "10 | 12", "color", "red", "navy blue", "gray"),
            *("Fine Wool Socks A1", "Price: $12.5", "Rating: N.A."),
            *("Description", "Features", "Reviews", "Buy Now"),
        ]
        assert game.step("click[features]").observation.endswith("[SEP] Machine wash [SEP] Pack of two")
        game.step("click[< prev]")
        assert game.step("click[description]").observation.endswith("[SEP] Warm socks.")
        for word in ("fine", "a1", "warm", "machine", "size", "small", "navy", "gray"):
            assert found(game, word) == ["A1"], word
        assert found(game, "two") == found(game, "clothing") == []  # only the first feature counts


def test_there_is_a_task_for_each_combination_of_options(folder):
    with shop_of(folder([item("A1"), item("A2")])) as game:
        matches = [INSTRUCTION.fullmatch(goal) for goal in goals_of(game, 6)]
        assert {(match["color"], match["size"]) for match in matches} == {
            (color, size) for color in ("red", "navy blue", "gray") for size in ("small", "10 | 12")
        }
        assert game.reset(-1).goal == game.reset(5).goal
        with pytest.raises(ServerError):
            game.reset(6)


INSTRUCTION = re.compile(
    r"Find me (?P<attribute>\w+) wash men's socks with color: (?P<color>[\w ]+), "
    r"and size: (?P<size>[\w |]+), and price lower than (30|40|50)\.00 dollars"
)


def test_the_order_matches_agentgyms_server(folder):
    """Its ``random.seed(233); random.shuffle(goals)`` makes this of twelve goals."""
    other = {**WISHES, "instruction": "Find me hand wash men's socks"}
    with shop_of(folder([item("A1"), item("A2")], {"A1": WISHES, "A2": other})) as game:
        goals = [
            INSTRUCTION.fullmatch(goal).group("attribute", "color", "size") for goal in goals_of(game, 12)
        ]
    plain = [
        (attribute, color, size)
        for attribute in ("machine", "hand")
        for color in ("red", "navy blue", "gray")
        for size in ("small", "10 | 12")
    ]
    assert list(map(plain.index, goals)) == ORDER


ORDER = [5, 9, 0, 1, 4, 7, 6, 3, 8, 2, 11, 10]
"""What Python 3.8, on which that server runs, and all later ones make of it."""


@pytest.mark.parametrize(
    ("pricing", "tag", "low", "high"),
    [
        (None, "$100.0", 100, 100),
        ("", "$100.0", 100, 100),
        ("$1,299.00", "$1299.0", 1299, 1299),
        ("$10.50$20.25", "$10.5 to $20.25", 10.5, 20.25),
        ("$10.50 - $20.25", "$10.5 to $20.25", 10.5, 20.25),  # signs are no part of a number
        ("$1 to $2 to $3", "$1.0 to $2.0", 1, 2),
    ],
)
def test_prices(folder, pricing, tag, low, high):
    path = folder([item("A1", pricing=pricing)])
    with shop_of(path) as game, shop_of(path) as again:
        assert f"Price: {tag}" in page_of(game, "A1")
        goal = game.reset(0).goal
        assert goal == again.reset(0).goal
        limit = re.search(r"price lower than ([\d.]+) dollars", goal)
        if high < 960:
            assert low < float(limit[1]) <= high + 40
        else:
            assert limit is None


def test_products_that_agentgyms_server_leaves_out(folder):
    items = [item("nan"), item("B0123456789"), item("A1"), item("A1", name="again socks"), item("A2")]
    with shop_of(folder(items)) as game:
        assert sorted(found(game, "socks")) == ["A1", "A2"]
        assert found(game, "again") == []


def test_products_without_options_or_with_one_line_of_features(folder):
    with shop_of(folder([item("A1", customization_options="", small_description="One line")])) as game:
        assert page_of(game, "A1")[0] == "Fine Wool Socks A1"
        assert game.step("click[features]").observation.endswith("< Prev [SEP] One line")
        start = "Find me machine wash men's socks, and price lower than "
        assert game.reset(0).goal.startswith(start)
        with pytest.raises(ServerError):
            game.reset(1)


def test_instructions_of_people_come_last(folder):
    wish = {
        "asin": "A1",
        "instruction": "i need warm socks.",
        "instruction_attributes": ["wool"],
        "instruction_options": ["red"],
        "options": [],
    }
    people = {"A1": [wish, {**wish, "instruction_attributes": []}], "ZZ": [wish]}
    to_item = ["search[socks]", "click[a1]"]
    with shop_of(folder([item("A1")], people=people)) as game:
        assert game.reset(6).goal.startswith("i need warm socks, and price lower than ")
        assert game.reset(-1).goal == game.reset(6).goal
        assert game.play(6, [*to_item, "click[red]", "click[buy now]"]).reward == 1
        assert 0 < game.play(6, [*to_item, "click[gray]", "click[buy now]"]).reward < 1
        with pytest.raises(ServerError):
            game.reset(7)
    with shop_of(folder([item("A1")], wishes={}, people=people)) as game:
        assert game.reset(0).goal.startswith("i need warm socks")
        with pytest.raises(ServerError):
            game.reset(1)


# --- what is not as it should be ---


@pytest.mark.parametrize(
    ("items", "wishes", "reason"),
    [
        ("", None, "items_shuffle_1000.json should"),
        ("{}", None, "items_shuffle_1000.json should"),
        ("[", None, "item 0 cannot be read"),
        ('[{"asin": "nan"}', None, "item 0 is followed by"),
        ('[{"asin": "nan"}, ', None, "item 1 cannot be read"),
        ('[{"asin": "nan"} {}]', None, "item 0 is followed by"),
        ('[{"asin": "nan"}, {"a', None, "item 1 cannot be read"),
        ('[{"asin": "nan"},]', None, "item 1 cannot be read"),
        ("[" * 100_000, None, "item 0 cannot be read"),
        ("[1" + "0" * 5_000 + "]", None, "item 0 cannot be read"),
        ([1], None, "item 0: the item should"),
        ([item("A1"), {}], None, "item 1: asin should"),
        ([item("A1", name=3)], None, "item 0: name should"),
        ([item("A1", query=None)], None, "item 0: query should"),
        ([item("A1", full_description=None)], None, "item 0: full_description should"),
        ([item("A1", small_description=[1])], None, "item 0: small_description should"),
        ([item("A1", customization_options=[1])], None, "customization_options should"),
        ([item("A1", customization_options={"a": 1})], None, "customization_options should"),
        (
            [item("A1", customization_options={"a": [{}]})],
            None,
            "customization_options should",
        ),
        ([item("A1", pricing="free")], None, "item 0: pricing should"),
        ([item("A1", pricing="$")], None, "item 0: pricing"),
        ([item("A1", pricing="$" + "9" * 400)], None, "item 0: pricing"),
        ([item("A1", pricing=9.5)], None, "item 0: pricing should"),
        ([item("A1")], "[]", "items_ins_v2_1000.json should"),
        ([item("A1")], '{"A1": ', "items_ins_v2_1000.json: "),
        ([item("A1")], {"A1": 3}, "items_ins_v2_1000.json: A1: the item should"),
        ([item("A1")], {"A1": {"attributes": "x"}}, "A1: attributes should"),
        ([item("A1")], {"A1": {**WISHES, "instruction": 3}}, "A1: instruction should"),
        ([item("A1")], {"A1": {**WISHES, "instruction_attributes": []}}, "requires no attributes"),
        ([item("A1")], {"A2": WISHES}, "has no instruction for a product of"),
        ([], None, "has no instruction for a product of"),
    ],
)
def test_a_malformed_file_is_named_with_its_item(folder, items, wishes, reason):
    with pytest.raises(BadOption, match=re.escape(reason)):
        load(folder(items, wishes))


def test_more_tasks_than_its_capacity(folder):
    values = [{"value": str(number)} for number in range(100)]
    options = {str(number): values for number in range(20)}
    with pytest.raises(BadOption, match=r"has 1000000\d* tasks"):
        load(folder([item("A1", customization_options=options)]))


@pytest.mark.parametrize("people", ["[]", {"A1": [3]}, {"A1": [{"instruction": "x"}]}])
def test_malformed_instructions_of_people(folder, people):
    with pytest.raises(BadOption, match=r"items_human_ins\.json"):
        load(folder([item("A1")], people=people))


def test_a_file_that_is_not_text(folder):
    path = folder([item("A1")])
    (path / "items_shuffle_1000.json").write_bytes(b'[{"asin": "\xff"}]')
    with pytest.raises(BadOption, match=r"_1000\.json: item 0 "):
        load(path)


def test_folders_without_the_files_or_with_two_of_a_kind(folder, tmp_path):
    with pytest.raises(BadOption, match="there is none"):
        load(tmp_path)
    with pytest.raises(BadOption, match="there is none"):
        load(tmp_path / "nowhere")
    folder([item("A1")])
    (tmp_path / "items_shuffle.json").write_text("[]")
    with pytest.raises(BadOption, match=r"there are items_shuffle\.json"):
        load(tmp_path)


def test_an_array_is_read_in_parts(folder):
    """Items that are larger than the part of a file that is read at a time, with any blanks between."""
    texts = ["x" * 300_000, "", "y" * 2_500_000, "z", "\u00e9" * 900_000, ""]
    items = [item(f"A{number}", full_description=text) for number, text in enumerate(texts)]
    for blank in ("", " \n\t"):
        content = f"{blank},{blank}".join(json.dumps(each, ensure_ascii=False) for each in items)
        with shop_of(folder(f"{blank}[{blank}{content}{blank}]{blank}", {"A1": WISHES})) as game:
            assert sorted(found(game, "socks")) == [f"A{number}" for number in range(len(items))]


# --- served ---


def test_it_is_served(folder):
    with shop_of(folder([item("A1"), item("A2", name="Steel Lamp")])) as game:
        match = INSTRUCTION.fullmatch(game.reset(5).goal)
        assert "(WebShop, data)" in game.head
        actions = ["search[wool]", "click[a1]", f"click[{match['color']}]", f"click[{match['size']}]"]
        bought = game.play(5, [*actions, "click[buy now]"])
    assert (bought.reward, bought.done) == (1.0, True)


LARGE = 10_000  # products, of the 100,000 for which the limits are meant

WITHIN = f"""{PEAK}
import json, statistics, sys, time
from pathlib import Path
from local_game import LocalGame
folder = Path(sys.argv[1])
names = json.loads(sys.argv[2])
taken = {{"search": [], "other": []}}
with LocalGame("WebShop", data=folder) as game:
    game.reset(0)
    for name in names:
        for kind, action in (("search", f"search[{{name}}]"), ("other", "click[back to search]")):
            began = time.thread_time()
            outcome = game.step(action)
            taken[kind].append(time.thread_time() - began)
            assert ("Total results: 50)" in outcome.observation) == (kind == "search")
search, other = map(statistics.median, taken.values())
print(json.dumps([peak_memory(), search - other]))
"""


@pytest.mark.slow
def test_a_large_shop_takes_no_more_than_it_may(tmp_path, report_at_end):
    """Less than 3 GB and 20 ms a search for 100,000 products of 4 KB, measured with a part of them."""
    words = [f"w{number}x" for number in range(20_000)]
    texts = [
        " ".join(words[(i * 7_919 + j * j * 31) % (200 if j % 2 else 20_000)] for j in range(220))
        for i in range(50)
    ]
    with (tmp_path / "items_shuffle.json").open("w") as file:
        for number in range(LARGE):
            text = texts[number % 50]
            fields = {
                "name": f"{text[:100]} n{number}",
                "full_description": text,
                "small_description": [text, text],
            }
            file.write(("," if number else "[") + json.dumps(item(f"A{number}", **fields)))
        file.write("]")
    wishes = {f"A{number}": WISHES for number in range(LARGE)}
    (tmp_path / "items_ins_v2.json").write_text(json.dumps(wishes))
    names = [f"{texts[number % 50][:100]} n{number}" for number in range(0, LARGE, LARGE // 100)]
    ended = subprocess.run(
        [sys.executable, "-c", WITHIN, str(tmp_path), json.dumps(names)],
        capture_output=True,
        text=True,
        check=True,
        env=programs.environment(),
    )
    peak, search = json.loads(ended.stdout)
    report_at_end(f"{LARGE} products of WebShop take {peak / 1e6:.0f} MB, a search {search * 1e3:.2f} ms")
    assert peak < 3e9 * LARGE / 100_000 + 100e6  # Python and numpy themselves take the rest
    assert search < 0.020 * LARGE / 100_000
