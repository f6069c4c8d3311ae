"""The pages of the shop, what can be clicked on them, and what does nothing."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentgym_servers.webshop._products import Goal, Product, RequiredOption, Review
from agentgym_servers.webshop._session import GameTurn, Session, keywords_of
from clock import cpu_seconds

MUG = Product(
    asin="B00000MUG1",
    name="Dunmere Mug",
    query="mugs",
    path="Kitchen",
    attributes=("lead free",),
    options={"color": ("red", "blue <&'>"), "size": ("small", "large")},
    description="Keeps tea hot.",
    features=("Lead free glaze", "Wide handle"),
    price=8.5,
    price_tag="$8.5",
    reviews=(Review("Fine", 4, "I like it."), Review("Broken", 1, "It came in two parts.")),
    rating="2.5",
)
OTHERS = [replace(MUG, asin=f"B00000000{i}", name=f"Mug {i}", options={}) for i in range(10)]
FOUND = [*OTHERS, MUG, replace(OTHERS[0], asin="B000000010")]
GOAL = Goal("Find me a mug", MUG, ("lead free",), (RequiredOption("red", "color"),), 20.0)

FIRST = "WebShop [SEP] Instruction: [SEP] Find me a mug [SEP] Search"
TOP = "Instruction: [SEP] Find me a mug [SEP] Back to Search [SEP] "
ITEM = TOP + (
    "< Prev [SEP] color [SEP] red [SEP] blue <&'> [SEP] size [SEP] small [SEP] large [SEP] Dunmere Mug [SEP] "
    "Price: $8.5 [SEP] Rating: 2.5 [SEP] Description [SEP] Features [SEP] Reviews [SEP] Buy Now"
)
RESULTS_2 = TOP + (
    "Page 2 (Total results: 12) [SEP] < Prev [SEP] Next > [SEP] B00000MUG1 [SEP] Dunmere Mug [SEP] $8.5 "
    "[SEP] B000000010 [SEP] Mug 0 [SEP] $8.5"
)


@pytest.fixture
def session():
    return Session(GOAL)


def play(session, *actions):
    """Play actions; a search finds `FOUND`. Return the last observation."""
    for action in actions:
        outcome = session.play(action, FOUND if keywords_of(action) is not None else ())
    return outcome.observation


TO_ITEM = ("search[mug]", "click[next >]", "click[b00000mug1]")


# --- pages ---


def test_the_first_page(session):
    assert session.observation == FIRST
    assert (session.has_search_bar, session.clickables) == (True, ["search"])
    assert session.instruction_text == "Instruction: Find me a mug"


def test_results_come_ten_to_a_page(session):
    assert play(session, "search[mug]").startswith(
        TOP + "Page 1 (Total results: 12) [SEP] Next > [SEP] B000000000"
    )
    assert session.clickables == ["back to search", "next >", *(p.asin.lower() for p in FOUND[:10])]
    assert not session.has_search_bar
    assert session.instruction_text == "Instruction:Find me a mug"
    assert play(session, "click[next >]") == RESULTS_2
    assert session.clickables == ["back to search", "< prev", "next >", "b00000mug1", "b000000010"]
    assert play(session, "click[Next >]") == TOP + "Page 3 (Total results: 12) [SEP] < Prev [SEP] Next >"
    assert play(session, "click[< prev]") == RESULTS_2


def test_nothing_found(session):
    outcome = session.play("search[zzz]", ())
    assert outcome == GameTurn(TOP + "Page 1 (Total results: 0) [SEP] Next >")


def test_a_product(session):
    assert play(session, *TO_ITEM) == ITEM
    assert session.clickables == [
        *("back to search", "< prev", "description", "features", "reviews", "buy now"),
        *("red", "blue <&'>", "small", "large"),
    ]


@pytest.mark.parametrize(
    ("page", "told"),
    [
        ("Description", "Keeps tea hot."),
        ("Features", "Lead free glaze [SEP] Wide handle"),
        ("Reviews", '"Fine" [SEP] 4 [SEP] I like it. [SEP] "Broken" [SEP] 1 [SEP] It came in two parts.'),
    ],
)
def test_a_sub_page(session, page, told):
    assert play(session, *TO_ITEM, f"click[{page}]") == f"{TOP}< Prev [SEP] {told}"
    assert session.clickables == ["back to search", "< prev"]
    assert play(session, "click[< Prev]") == ITEM


def test_what_is_empty_leaves_no_gap():
    bare = Session(replace(GOAL, product=replace(MUG, description=" ", reviews=())))
    bare.play("search[mug]", [replace(MUG, description=" ", reviews=())])
    bare.play("click[b00000mug1]")
    assert bare.play("click[description]").observation == f"{TOP}< Prev"
    bare.play("click[< prev]")
    assert bare.play("click[reviews]").observation == f"{TOP}< Prev"


def test_back_from_a_product_to_its_page_of_results(session):
    assert play(session, *TO_ITEM, "click[< prev]") == RESULTS_2


def test_back_to_search(session):
    for way in ([], ["click[features]"], ["click[< prev]"]):
        assert play(session, *TO_ITEM, *way, "click[Back To Search]") == FIRST


def test_one_can_search_from_every_page(session):
    for way in ([*TO_ITEM], [*TO_ITEM, "click[reviews]"], [*TO_ITEM, "click[buy now]"]):
        assert play(session, *way, "search[x]").startswith(TOP + "Page 1 (Total")


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
    assert (session.clickables, session.has_search_bar, session.instruction_text) == ([], False, None)
    assert session.observation == outcome.observation


def test_the_last_choice_counts(session):
    play(session, *TO_ITEM, "click[blue <&'>]", "click[red]")
    assert session.play("click[buy now]").reward == 1.0


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


def test_choices_are_kept_on_sub_pages(session):
    play(session, *TO_ITEM, "click[red]", "click[features]", "click[< prev]")
    assert session.play("click[buy now]").reward == 1.0


def test_a_second_purchase_pays_nothing_and_changes_nothing(session):
    play(session, *TO_ITEM)
    assert session.play("click[buy now]").reward == 2 / 3
    play(session, *TO_ITEM, "click[red]")
    assert session.play("click[buy now]") == GameTurn(ITEM)
    assert session.clickables[5] == "buy now"


def test_a_value_that_two_options_have_is_chosen_for_the_last():
    both = replace(
        MUG, options={"lid": ("red", "none"), "cup": ("red", "white")}, extras={("lid", "red"): 30.0}
    )
    session = Session(replace(GOAL, product=both))
    session.play("search[mug]", [both])
    play(session, "click[b00000mug1]", "click[none]", "click[red]")
    outcome = session.play("click[buy now]")
    assert '{"cup": "red", "lid": "none"}' in outcome.observation
    assert outcome.reward == 1.0  # a red lid would make it too dear


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
def test_what_is_not_understood_does_nothing(session, action):
    assert keywords_of(action) is None
    for way in ([], [*TO_ITEM], [*TO_ITEM, "click[reviews]"]):
        before = play(session, *way) if way else session.observation
        assert session.play(action) == GameTurn(before)


@pytest.mark.parametrize("page", ["search[mug]", "click[features]", "click[buy now]"])
def test_nothing_is_bought_on_other_pages(session, page):
    play(session, *TO_ITEM, page)
    before = session.observation
    if page != "click[buy now]":
        assert session.play("click[buy now]") == GameTurn(before)
    assert session.play("click[red]") == GameTurn(before)


# --- how actions are read ---


AGENTGYMS = re.compile(r"(.+)\[(.+)\]")


def expected(action):
    """Return the keywords as AgentGym's pattern reads them."""
    match = AGENTGYMS.match(action)
    return match[2] if match and match[1] == "search" else None


@given(st.text(alphabet="[]\n a\r", max_size=20).map("search[".__add__) | st.text(max_size=20))
def test_it_is_what_agentgyms_pattern_reads(action):
    assert keywords_of(action) == expected(action)


@pytest.mark.parametrize(
    "action", ["search[a]b]", "search[a] and click[b]", "search[[x]", "search[x]]\n[y]", "search[]]"]
)
def test_brackets(action):
    assert keywords_of(action) == expected(action)


@pytest.mark.parametrize(
    "action", ["search[" * 150_000, "[]" * 500_000, "search[" + "a]" * 500_000, "é" * 300_000]
)
def test_it_is_read_quickly(action):
    """AgentGym's pattern takes hours for the first of these."""
    assert cpu_seconds(lambda: Session(GOAL).play(action), enough=0.05) <= 0.05
