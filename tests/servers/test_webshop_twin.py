"""The twin of a generated shop: AgentGym's wording and prices, the same products, tasks and solutions."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from functools import partial

import pytest

from agentgym_gym.local_servers import ServerOptions
from agentgym_servers.webshop._oracle import plan
from agentgym_servers.webshop._search import Index
from agentgym_servers.webshop._server import create_app
from agentgym_servers.webshop._session import Session, keywords_of
from agentgym_servers.webshop._twin import twin_of
from agentgym_servers.webshop._world import TASKS, world_of
from in_process import posted

SAMPLE = range(0, TASKS, 37)


@pytest.fixture(scope="module")
def twin():
    return twin_of(0)


def test_instructions_are_worded_as_on_agentgyms_server(twin):
    """By the form of all recorded instructions, with the options in alphabetical order."""
    form = re.compile(
        r"Find me (?:.+ with (?P<options>[a-z ]+: .+)|[^:]+), and price lower than \d+\.00 dollars"
    )
    for task in range(TASKS):
        match = form.fullmatch(twin.goals[task].instruction)
        assert match, twin.goals[task].instruction
        names = [part.split(": ")[0] for part in (match["options"] or "").split(", and ")]
        assert names == sorted(names)
        assert len(names) == max(1, len(twin.goals[task].options))
    assert len({twin.goals[task].instruction for task in range(TASKS)}) == TASKS


def test_products_have_one_price_and_no_reviews(twin):
    prices = Counter()
    for product in twin.products:
        low, _, high = product.price_tag.replace("$", "").partition(" to ")
        assert float(low) <= product.price <= float(high or low)
        assert (
            product.price_with({name: values[-1] for name, values in product.options.items()})
            == product.price
        )
        assert (product.rating, product.reviews) == ("N.A.", ())
        assert "costs" not in product.description
        prices[product.price == float(low)] += 1
    assert prices[False] > 300


def test_tasks_require_what_those_of_the_shop_require(twin):
    for task in range(TASKS):
        ours, theirs = world_of(0).goals[task], twin.goals[task]
        assert ours.product.asin == theirs.product.asin
        assert ours.attributes == theirs.attributes
        assert {*ours.options} == {*theirs.options}
        assert 10 < theirs.price_limit - theirs.product.price <= 40


def test_the_plan_of_the_oracle_wins(twin):
    index = Index(product.text for product in twin.products)
    outcomes = Counter()
    for task in SAMPLE:
        session = Session(twin.goals[task], twin=True)
        for action, _ in plan(world_of(0), task, partial(getattr, session, "observation")):
            keywords = keywords_of(str(action))
            places = index.search(keywords) if keywords is not None else ()
            outcome = session.play(str(action), [twin.products[place] for place in places])
        outcomes[outcome.reward, outcome.done] += 1
    assert outcomes == {(1.0, True): len(SAMPLE)}


def page_of(product, button):
    """Return the texts of a page of a product on the twin, after the button that leads back."""
    session = Session(replace(world_of(0).goals[0], product=product), twin=True)
    session.play("search[x]", [product])
    session.play(f"click[{product.asin}]")
    return session.play(f"click[{button}]").observation.split(" [SEP] ")[4:]


@pytest.mark.parametrize(
    ("lines", "parts"),
    [
        ((), []),
        (("",), [""]),
        (("a", "", "b"), ["a", "", "b"]),
        ((" ", "\t"), ["", ""]),
        (("\n", "a\n"), ["a"]),
        (("\u00a0\n",), [""]),
    ],
)
def test_blank_features_are_parts_of_the_page(twin, lines, parts):
    """As Beautiful Soup parses the page of AgentGym's server, which puts a space before each line."""
    assert page_of(replace(twin.products[0], features=lines), "features") == parts


@pytest.mark.parametrize(("text", "parts"), [("", []), (" ", [""]), (" \n", []), (" a ", ["a"])])
def test_a_blank_description(twin, text, parts):
    assert page_of(replace(twin.products[0], description=text), "description") == parts


def test_each_purchase_pays(twin):
    goal = twin.goals[3]
    session = Session(goal, twin=True)
    rewards = []
    for chosen in ((), tuple(option.value for option in goal.options)):
        session.play("search[x]", [goal.product])
        for item in (goal.product.asin, *chosen):
            session.play(f"click[{item}]")
        outcome = session.play("click[buy now]")
        assert outcome.done
        rewards.append(outcome.reward)
    assert rewards[0] < rewards[1] == 1.0


@pytest.mark.parametrize("is_twin", [True, False])
def test_a_server_serves_it_on_request(twin, is_twin):
    app = create_app(ServerOptions(twin=is_twin))
    (env_id,) = (reply.json() for reply in posted(app, ("/create", {})))
    (page,) = posted(app, ("/reset", {"env_idx": env_id, "session_id": 5}))
    world = twin if is_twin else world_of(0)
    assert page.json()[0] == f"WebShop [SEP] Instruction: [SEP] {world.goals[5].instruction} [SEP] Search"
    assert twin.goals[5].instruction != world_of(0).goals[5].instruction
