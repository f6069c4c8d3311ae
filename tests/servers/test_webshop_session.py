"""The pages of the shop, what can be clicked on them, and what does nothing."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clock import cpu_seconds
from local_game import LocalGame


def product(asin, name, **fields):
    return {
        "asin": asin,
        "name": name,
        "query": "mugs",
        "product_category": "Kitchen",
        "full_description": "Keeps tea hot.",
        "small_description": ["Lead free glaze", "Wide handle"],
        "pricing": "$8.50",
        "customization_options": "",
        **fields,
    }


OPTIONS = {
    "color": [{"value": "red"}, {"value": "blue <&'>"}],
    "size": [{"value": "small"}, {"value": "large"}],
}
OTHERS = [product(f"B00000000{i}", f"Mug {i}") for i in range(10)]
MUG = product("B00000MUG1", "Dunmere Mug", customization_options=OPTIONS)
FOUND = [*OTHERS, product("B000000010", "Mug 0"), MUG]
WISH = {
    "asin": "B00000MUG1",
    "instruction": "Find me a mug",
    "instruction_attributes": ["lead free"],
    "instruction_options": ["red"],
}


def write(folder, *products):
    """Write a shop with one task, which requires the mug in red."""
    (folder / "items_shuffle.json").write_text(json.dumps(products))
    attributes = {each["asin"]: {"attributes": ["lead free"]} for each in products}
    (folder / "items_ins_v2.json").write_text(json.dumps(attributes))
    (folder / "items_human_ins.json").write_text(json.dumps({"B00000MUG1": [WISH]}))
    return folder


class Session:
    """One task that is played, and what its views show."""

    def __init__(self, game):
        self._game = game
        self.goal = game.reset(0).goal

    def play(self, *actions):
        """Play actions; return what the last one led to."""
        for action in actions:
            outcome = self._game.step(action)
        return outcome

    def view(self, name):
        return self._game.get(f"/{name}", env_idx=self._game.id).json()

    def view_status(self, name):
        return self._game.get(f"/{name}", env_idx=self._game.id).status_code

    @property
    def observation(self):
        return self.view("observation")

    @property
    def clickables(self):
        return self.view("available_actions")["clickables"]

    @property
    def has_search_bar(self):
        return self.view("available_actions")["has_search_bar"]

    @property
    def instruction_text(self):
        return self.view("instruction_text")


@pytest.fixture(scope="module")
def game(tmp_path_factory):
    with LocalGame("WebShop", data=write(tmp_path_factory.mktemp("shop"), *FOUND)) as game:
        yield game


@pytest.fixture(scope="module")
def top(game):
    return f"Instruction: [SEP] {game.reset(0).goal} [SEP] Back to Search [SEP] "


@pytest.fixture(scope="module")
def first(game):
    return f"WebShop [SEP] Instruction: [SEP] {game.reset(0).goal} [SEP] Search"


@pytest.fixture
def session(game, top, first):
    return Session(game)


ITEM = (
    "< Prev [SEP] color [SEP] red [SEP] blue <&'> [SEP] size [SEP] small [SEP] large [SEP] Dunmere Mug [SEP] "
    "Price: $8.5 [SEP] Rating: N.A. [SEP] Description [SEP] Features [SEP] Reviews [SEP] Buy Now"
)
RESULTS_2 = (
    "Page 2 (Total results: 12) [SEP] < Prev [SEP] Next > [SEP] B000000010 [SEP] Mug 0 [SEP] $8.5 "
    "[SEP] B00000MUG1 [SEP] Dunmere Mug [SEP] $8.5"
)


def play(session, *actions):
    """Play actions; return the last observation."""
    return session.play(*actions).observation


def does_nothing(session, action):
    before = session.observation
    outcome = session.play(action)
    return (outcome.observation, outcome.reward, outcome.done) == (before, 0, False)


TO_ITEM = ("search[mug]", "click[next >]", "click[b00000mug1]")


# --- pages ---


def test_the_first_page(session, first):
    assert session.observation == first
    assert (session.has_search_bar, session.clickables) == (True, ["search"])
    assert session.instruction_text == f"Instruction: {session.goal}"


def test_results_come_ten_to_a_page(session, top):
    assert play(session, "search[mug]").startswith(
        top + "Page 1 (Total results: 12) [SEP] Next > [SEP] B000000000"
    )
    assert session.clickables == ["back to search", "next >", *(each["asin"].lower() for each in FOUND[:10])]
    assert not session.has_search_bar
    assert session.instruction_text == f"Instruction:{session.goal}"
    assert play(session, "click[next >]") == top + RESULTS_2
    assert session.clickables == ["back to search", "< prev", "next >", "b000000010", "b00000mug1"]
    assert play(session, "click[Next >]") == top + "Page 3 (Total results: 12) [SEP] < Prev [SEP] Next >"
    assert play(session, "click[< prev]") == top + RESULTS_2


def test_nothing_found(session, top):
    assert play(session, "search[zzz]") == top + "Page 1 (Total results: 0) [SEP] Next >"


def test_a_product(session, top):
    assert play(session, *TO_ITEM) == top + ITEM
    assert session.clickables == [
        *("back to search", "< prev", "description", "features", "reviews", "buy now"),
        *("red", "blue <&'>", "small", "large"),
    ]


@pytest.mark.parametrize(
    ("page", "text"),
    [
        ("Description", " [SEP] Keeps tea hot."),
        ("Features", " [SEP] Lead free glaze [SEP] Wide handle"),
        ("Reviews", ""),
    ],
)
def test_a_sub_page(session, top, page, text):
    assert play(session, *TO_ITEM, f"click[{page}]") == f"{top}< Prev{text}"
    assert session.clickables == ["back to search", "< prev"]
    assert play(session, "click[< Prev]") == top + ITEM


def test_reviews_have_a_title_stars_and_a_text():
    with LocalGame("WebShop") as game:
        actions = list(map(str, game.win(0)[0]))
        at = next(n for n, action in enumerate(actions) if re.fullmatch(r"click\[\w{10}\]", action))
        page = game.play(0, [*actions[: at + 1], "click[reviews]"]).observation
    assert re.search(r'< Prev( \[SEP\] "[^"]+" \[SEP\] [1-5] \[SEP\] [^"\[]+)+$', page)


def test_empty_lines_leave_no_gap(tmp_path):
    bare = {**MUG, "full_description": " ", "small_description": [" "]}
    with LocalGame("WebShop", data=write(tmp_path, bare)) as game:
        session = Session(game)
        play(session, "search[mug]", "click[b00000mug1]")
        assert play(session, "click[description]").endswith("Back to Search [SEP] < Prev")
        play(session, "click[< prev]")
        assert play(session, "click[features]").endswith("Back to Search [SEP] < Prev")


def test_back_from_a_product_to_its_page_of_results(session, top):
    assert play(session, *TO_ITEM, "click[< prev]") == top + RESULTS_2


def test_back_to_search(session, first):
    for way in ([], ["click[features]"], ["click[< prev]"]):
        assert play(session, *TO_ITEM, *way, "click[Back To Search]") == first


def test_one_can_search_from_every_page(session, top):
    for way in ([*TO_ITEM], [*TO_ITEM, "click[reviews]"], [*TO_ITEM, "click[buy now]"]):
        assert play(session, *way, "search[x]").startswith(top + "Page 1 (Total")


# --- the purchase ---


def test_it_pays_what_it_is_worth_and_shows_what_was_bought(session):
    play(session, *TO_ITEM, "click[blue <&'>]", "click[small]")
    outcome = session.play("click[Buy Now]")
    assert (outcome.reward, outcome.done) == (2 / 3, True)
    assert outcome.observation == (
        "Thank you for shopping with us! [SEP] Your code: [SEP] None [SEP] "
        "(Paste it in your MTurk interface.) [SEP] Purchased [SEP] asin [SEP] B00000MUG1 [SEP] options [SEP] "
        '{"color": "blue \\u003c\\u0026\\u0027\\u003e", "size": "small"} [SEP] attrs [SEP] None '
        "[SEP] category [SEP] None [SEP] query [SEP] None [SEP] product category [SEP] None "
        "[SEP] Target [SEP] asin [SEP] options [SEP] attrs [SEP] price upper "
        "[SEP] instuction text [SEP] category [SEP] product category "
        "[SEP] query [SEP] Goal [SEP] None [SEP] Reward [SEP] Your score (min 0.0, max 1.0) "
        "[SEP] 0.6666666666666666 [SEP] Reward Details [SEP] None"
    )
    assert (session.clickables, session.has_search_bar) == ([], False)
    assert session.view_status("instruction_text") == 500  # as on AgentGym's server
    assert session.observation == outcome.observation


@pytest.mark.parametrize(
    "between",
    [
        ["click[< prev]", "click[b00000mug1]"],
        ["search[mug]", "click[next >]", "click[b00000mug1]"],
        ["click[back to search]", *TO_ITEM],
    ],
)
def test_choices_are_forgotten_where_the_product_is_left(session, between):
    play(session, *TO_ITEM, "click[red]", *between)
    assert session.play("click[buy now]").reward == 2 / 3


def test_a_second_purchase_pays_nothing_and_changes_nothing(session, top):
    play(session, *TO_ITEM)
    assert session.play("click[buy now]").reward == 2 / 3
    play(session, *TO_ITEM, "click[red]")
    outcome = session.play("click[buy now]")
    assert (outcome.observation, outcome.reward, outcome.done) == (top + ITEM, 0, False)
    assert session.clickables[5] == "buy now"


def test_a_value_that_two_options_have_is_chosen_for_the_last(tmp_path):
    options = {
        "lid": [{"value": "red"}, {"value": "none"}],
        "cup": [{"value": "red"}, {"value": "white"}],
    }
    with LocalGame("WebShop", data=write(tmp_path, {**MUG, "customization_options": options})) as game:
        session = Session(game)
        play(session, "search[mug]", "click[b00000mug1]", "click[none]", "click[red]")
        assert '{"cup": "red", "lid": "none"}' in play(session, "click[buy now]")


# --- what does nothing ---


@pytest.mark.parametrize(
    "action",
    [
        *(
            "",
            " ",
            "foo",
            "search",
            "search[]",
            "search]x[",
            "[x]",
            "SEARCH[x]",
            "Search[mug]",
            " search[mug]",
        ),
        *("search[a[b]", "click[a[b]]", "click[]", "click[nothing]", "click[buy now", "click[buy now ]"),
        *("click[ buy now]", "click[search]", "click[attributes]", "click[next >]x[y]", "\nsearch[mug]"),
        *("search[a\nb]", "click[b000000000]", "click[instruction:]", "\x00", "\ud800", "click[\ud800]"),
        "click[" + "[" * 1_000_000,
        "search[" + "]" * 0,
        "x" * 1_000_000,
    ],
)
def test_unknown_actions_do_nothing(session, action):
    for way in ((), TO_ITEM, (*TO_ITEM, "click[reviews]")):
        play(session, "click[back to search]", *way)
        assert does_nothing(session, action), way


@pytest.mark.parametrize("page", ["search[mug]", "click[features]", "click[buy now]"])
def test_nothing_is_bought_on_other_pages(session, page):
    play(session, *TO_ITEM, page)
    if page != "click[buy now]":
        assert does_nothing(session, "click[buy now]")
    assert does_nothing(session, "click[red]")


# --- how actions are read ---


AGENTGYMS = re.compile(r"(.+)\[(.+)\]")


def is_a_search(action):
    """Return whether AgentGym's pattern takes it for one."""
    match = AGENTGYMS.match(action)
    return match is not None and match[1] == "search"


def searches(session, action):
    play(session, "click[back to search]")
    return "Page 1 (Total results: " in play(session, action)


@settings(max_examples=25)
@given(st.text(alphabet="[]\n a\r", max_size=20).map("search[".__add__) | st.text(max_size=20))
def test_it_is_what_agentgyms_pattern_reads(game, action):
    assert searches(Session(game), action) == is_a_search(action)


@pytest.mark.parametrize(
    "action", ["search[a]b]", "search[a] and click[b]", "search[[x]", "search[x]]\n[y]", "search[]]"]
)
def test_brackets(session, action):
    assert searches(session, action) == is_a_search(action)


def test_keywords_end_at_the_last_bracket_of_the_line(session):
    assert "(Total results: 12)" in play(session, "search[zzz]mug]")
    assert "(Total results: 0)" in play(session, "search[zzz]\nmug]")


@pytest.mark.parametrize(
    "action", ["search[" * 149_000, "[]" * 500_000, "search[" + "a]" * 500_000, "é" * 170_000]
)
def test_it_is_read_quickly(session, action):
    """AgentGym's pattern takes hours for the first of these."""
    assert cpu_seconds(lambda: session.play(action), enough=0.1) <= 0.1
