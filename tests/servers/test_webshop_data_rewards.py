"""Purchases on a server of WebShop's own files: each reward equals AgentGym's formula."""

from __future__ import annotations

import random
import re
import subprocess
import sys

import httpx
import pytest

from webshop_files import make_catalogue
from webshop_formula import expected_reward

CATALOGUE = make_catalogue(240, seed=7)
PURCHASES = 400

INSTRUCTION = re.compile(
    r"Find me .* of brand (?P<brand>\d+) with (?P<options>.*), and price lower than (?P<limit>[\d.]+) dollars"
)


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    """A client of a server of `CATALOGUE` in a separate process."""
    folder = CATALOGUE.write(tmp_path_factory.mktemp("webshop"))
    command = [sys.executable, "-m", "agentgym_gym", "serve", "webshop", "--port", "0", "--data", str(folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            line = next(line for line in server.stdout if line.startswith("serving "))
            with httpx.Client(base_url=line.split()[-1], timeout=60) as client:
                yield client
        finally:
            server.kill()


class Buyer:
    """Buys on one environment of a server."""

    def __init__(self, client: httpx.Client) -> None:
        self._client = client
        self._env_id = client.post("/create").json()

    def instruction(self, task: int) -> re.Match[str]:
        """Start a task and return its instruction."""
        page = self._client.post("/reset", json={"env_idx": self._env_id, "session_id": task}).json()[0]
        match = INSTRUCTION.search(page)
        assert match, page
        return match

    def step(self, action: str) -> dict:
        return self._client.post("/step", json={"env_idx": self._env_id, "action": action}).json()

    def buy(self, asin: str, chosen: dict[str, str]) -> float:
        """Find a product by its title, choose values and return the reward."""
        self.step(f"search[{CATALOGUE.products[asin]['name']}]")
        page = self.step(f"click[{asin}]")["state"]
        assert CATALOGUE.products[asin]["name"] in page
        for value in chosen.values():
            self.step(f"click[{value}]")
        outcome = self.step("click[buy now]")
        assert outcome["done"]
        return outcome["reward"]


def purchase(match: re.Match[str], draw: random.Random) -> tuple[str, str, dict[str, str], dict[str, str]]:
    """Return the target, the product to buy, its required and its chosen options.

    Most purchases have one wrong choice; some have none, lack one, or are of another product.
    """
    target = bought = f"B{int(match['brand']):09d}"
    required = dict(part.split(": ", 1) for part in match["options"].split(", and "))
    options = CATALOGUE.options(target)
    assert required.keys() == options.keys()
    chosen = {name: required[name] for name in options}
    kind, name = draw.random(), draw.choice(list(options))
    if kind < 0.6:
        chosen[name] = draw.choice([value for value in options[name] if value != required[name]])
    elif kind < 0.7:
        del chosen[name]
    elif kind < 0.9:
        bought = draw.choice(list(CATALOGUE.products))
        chosen = {each: draw.choice(values) for each, values in CATALOGUE.options(bought).items()}
    return target, bought, required, chosen


@pytest.mark.slow
def test_each_reward_equals_the_formula(client, report_at_end):
    draw = random.Random(24)  # noqa: S311 - nothing secret
    buyer, rewards, cheaper = Buyer(client), [], 0
    for _ in range(PURCHASES):
        match = buyer.instruction(draw.randrange(6_000))
        target, bought, required, chosen = purchase(match, draw)
        price = float(CATALOGUE.products[bought]["pricing"][1:])
        reward = buyer.buy(bought, chosen)
        assert reward == expected_reward(
            CATALOGUE.products[bought],
            CATALOGUE.entries[bought]["attributes"],
            CATALOGUE.products[target],
            attributes=CATALOGUE.entries[target]["instruction_attributes"],
            options=required,
            chosen=chosen,
            within_limit=price <= float(match["limit"]),
        ), (required, chosen)
        rewards.append(reward)
        cheaper += bought == target and chosen != required and reward < 1
    report_at_end(
        f"{PURCHASES} WebShop purchases: {cheaper} wrong choices cost something, "
        f"{len({*rewards})} different rewards"
    )
    assert cheaper > PURCHASES / 4
    assert len({*rewards}) > 8
