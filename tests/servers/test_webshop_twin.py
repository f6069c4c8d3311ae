"""The twin of a generated shop: AgentGym's wording and prices, the same products, tasks and solutions."""

from __future__ import annotations

import json
import re
from collections import Counter

import pytest

from agentgym_gym.envs.webshop import WEBSHOP
from local_game import LocalGame

SAMPLE = WEBSHOP.task_ids[::37]


@pytest.fixture(scope="module")
def twin():
    with LocalGame("WebShop", twin=True) as game:
        game.reset(0)
        yield game


@pytest.fixture(scope="module")
def own():
    with LocalGame("WebShop") as game:
        game.reset(0)
        yield game


@pytest.mark.parametrize(
    "tasks", [SAMPLE[::5], pytest.param(WEBSHOP.task_ids[::10], marks=pytest.mark.slow)], ids=len
)
def test_instructions_are_worded_as_on_agentgyms_server(twin, tasks):
    """By the form of all recorded instructions, with the options in alphabetical order."""
    form = re.compile(
        r"Find me (?:.+ with (?P<options>[a-z ]+: .+)|[^:]+), and price lower than \d+\.00 dollars"
    )
    goals = {twin.reset(task).goal for task in tasks}
    assert len(goals) == len(tasks)
    for goal in goals:
        match = form.fullmatch(goal)
        assert match, goal
        names = [part.split(": ")[0] for part in (match["options"] or "").split(", and ")]
        assert names == sorted(names)


def to_item(actions):
    """Return the actions of a solution up to the click on the product."""
    at = next(n for n, action in enumerate(actions) if re.fullmatch(r"click\[\w{10}\]", str(action)))
    return actions[: at + 1]


def clicks_of(actions):
    """Return the clicks of a solution, whichever page of results has the product."""
    return [text for text in map(str, actions[1:]) if text != "click[next >]"]


def options_of(page):
    """Return the parts of a page of a product before its name and price."""
    return page.partition(" [SEP] Price: ")[0].split(" [SEP] ")[4:-1]


@pytest.mark.parametrize("tasks", [SAMPLE[::20], pytest.param(SAMPLE[::4], marks=pytest.mark.slow)], ids=len)
def test_tasks_have_the_same_solutions_and_other_prices(twin, own, tasks):
    """One price, which is in the range on the page, and less than the limit by ten to forty dollars."""
    higher = 0
    for task in tasks:
        ours, theirs = own.win(task), twin.win(task)
        assert clicks_of(ours[0]) == clicks_of(theirs[0])
        assert (ours[1].reward, theirs[1].reward, theirs[1].done) == (1, 1, True)
        pages = [g.play(task, to_item(win[0])).observation for g, win in ((own, ours), (twin, theirs))]
        assert options_of(pages[0]) == options_of(pages[1])
        assert "Rating: N.A." in pages[1]
        low, high = re.search(r"Price: \$([\d.]+)(?: to \$([\d.]+))? \[SEP\]", pages[1]).groups()
        limit = float(re.search(r"price lower than ([\d.]+) dollars", twin.reset(task).goal)[1])
        assert float(low) + 10 < limit <= float(high or low) + 40
        higher += limit > float(low) + 40
    assert higher > len(tasks) / 10


def test_products_have_neither_reviews_nor_prices_in_their_description(twin, own):
    costs = Counter()
    for task in SAMPLE[::20]:
        actions, _ = twin.win(task)
        assert twin.play(task, [*to_item(actions), "click[reviews]"]).observation.endswith("< Prev")
        for game in (twin, own):
            page = game.play(task, [*to_item(actions), "click[description]"]).observation
            costs[game] += "costs" in page
    assert costs[twin] == 0 < costs[own]


def test_each_purchase_pays(twin):
    actions, _ = twin.win(3)
    twin.reset(3)
    bought = []
    for path in ([*to_item(actions), actions[-1]], actions):
        for action in path:
            outcome = twin.step(action)
        assert outcome.done
        bought.append(outcome.reward)
    assert bought[0] < bought[1] == 1.0


def test_the_head_names_it_and_its_instructions_differ(twin, own):
    assert twin.reset(5).goal != own.reset(5).goal
    assert (twin.head, own.head) == (
        "agentgym-servers/3 (WebShop, seed 0, twin)",
        "agentgym-servers/3 (WebShop, seed 0)",
    )


# --- blank parts of pages, which a folder's products may have ---


def page_of(folder, button, **fields):
    """Return the parts of a page of a product with these fields, after the button that leads back."""
    product = {
        "asin": "A1",
        "name": "Mug",
        "query": "",
        "product_category": "",
        "full_description": "x",
        "small_description": ["x"],
        "pricing": "$1",
        "customization_options": "",
        **fields,
    }
    wish = {"attributes": ["x"], "instruction": "Find it", "instruction_attributes": ["x"]}
    (folder / "items_shuffle.json").write_text(json.dumps([product]))
    (folder / "items_ins_v2.json").write_text(json.dumps({"A1": wish}))
    with LocalGame("WebShop", data=folder, twin=True) as game:
        page = game.play(0, ["search[mug]", "click[a1]", f"click[{button}]"]).observation
    return page.split(" [SEP] ")[4:]


@pytest.mark.parametrize(
    ("lines", "parts"),
    [
        ([], []),
        ([""], [""]),
        (["a", "", "b"], ["a", "", "b"]),
        ([" ", "\t"], ["", ""]),
        (["\n", "a\n"], ["a"]),
        (["\u00a0\n"], [""]),
    ],
)
def test_blank_features_are_parts_of_the_page(tmp_path, lines, parts):
    """As Beautiful Soup parses the page of AgentGym's server, which puts a space before each line."""
    assert page_of(tmp_path, "features", small_description=lines) == parts


@pytest.mark.parametrize(("text", "parts"), [("", []), (" ", [""]), (" \n", []), (" a ", ["a"])])
def test_a_blank_description(tmp_path, text, parts):
    assert page_of(tmp_path, "description", full_description=text) == parts
