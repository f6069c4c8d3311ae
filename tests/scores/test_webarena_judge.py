"""WebArena's judge by its rule: every part of a check counts, the second page and the last text, too."""

from __future__ import annotations

import asyncio
import json

import pytest

import needs
from agentgym_gym import AsyncAgentGymEnv
from agentgym_gym.local_servers import LocalServer
from fake_server import FakeServer, as_page

pytestmark = [pytest.mark.needs(*needs.needs_of_server("webarena")), pytest.mark.slow]


@pytest.fixture(scope="module")
def shop():
    """A shop, each page of which has its path as its text."""
    with FakeServer(
        lambda request: as_page(f"<title>Shop</title><p>{request.path} costs 12 &amp; more</p>")
    ) as server:
        yield server.url


def page(path, locator="", **required):
    return {"url": f"__SHOPPING__{path}", "locator": locator, "required_contents": required}


TEXT = "document.querySelector('p').outerText"
TEA, MILK = (
    page("/tea", must_include=["/tea", "12"]),
    page("/milk", TEXT, exact_match="/milk costs 12 & more"),
)
NO_MILK = page("/milk", must_include=["/tea"])

CHECKS = [  # more answers and addresses are in tests/servers/test_webarena_rules.py
    # the check, the agent's actions, and whether the task is solved
    ({"program_html": [TEA]}, ["stop []"], True),
    ({"program_html": [TEA, MILK]}, ["stop []"], True),
    ({"program_html": [TEA, NO_MILK]}, ["stop []"], False),
    ({"program_html": [NO_MILK, TEA]}, ["stop []"], False),
    ({"program_html": [page("/tea", must_include=["/tea", "13"])]}, ["stop []"], False),
    ({"program_html": [page("/tea", must_include=["13 |OR| 12"])]}, ["stop []"], True),
    ({"program_html": [page("/tea", must_include=["13 |OR| 14"])]}, ["stop []"], False),
    ({"program_html": [page("/tea", TEXT, exact_match="/tea costs 12 &")]}, ["stop []"], False),
    ({"reference_url": "__SHOPPING__/tea"}, ["goto [__SHOPPING__/tea]", "stop []"], True),
    ({"reference_url": "__SHOPPING__/tea"}, ["goto [__SHOPPING__/milk]", "stop []"], False),
    ({"reference_url": "__SHOPPING__/t?a=1&b=2"}, ["goto [__SHOPPING__/t?b=2&a=1]", "stop []"], True),
    ({"reference_answers": {"must_include": ["12", "tea"]}}, ["stop [Tea for 12]"], True),
    ({"reference_answers": {"must_include": ["12", "tea"]}}, ["stop [12]"], False),
    ({"reference_answers": {"exact_match": "tea"}, "program_html": [TEA]}, ["stop [tea]"], True),
    ({"reference_answers": {"exact_match": "tea"}, "program_html": [NO_MILK]}, ["stop [tea]"], False),
    ({"reference_answers": {"exact_match": "tea"}, "program_html": [TEA]}, ["stop [milk]"], False),
]
KINDS = {"reference_answers": "string_match", "reference_url": "url_match", "program_html": "program_html"}


def task(number, check):
    return {
        "sites": ["shopping"],
        "task_id": number,
        "require_login": False,
        "storage_state": None,
        "start_url": "__SHOPPING__",
        "geolocation": None,
        "intent_template": "Shop",
        "instantiation_dict": {},
        "intent": "Shop",
        "require_reset": False,
        "eval": {
            "eval_types": [KINDS[name] for name in check],
            "reference_answers": None,
            "reference_url": "",
            "program_html": [],
            **check,
        },
        "intent_template_id": 0,
    }


@pytest.fixture
def url(tmp_path, shop):
    tasks = [task(number, check) for number, (check, _, _) in enumerate(CHECKS)]
    (tmp_path / "test.raw.json").write_text(json.dumps(tasks), "utf-8")
    (tmp_path / "sites.json").write_text(json.dumps({"__SHOPPING__": shop}), "utf-8")
    server = LocalServer("webarena", arguments=("--data", str(tmp_path)))
    yield server.start()
    server.stop()


def test_each_check(url, shop):
    """All in one test, as each waits most of its time for the browser."""
    at_once = asyncio.Semaphore(8)

    async def play(number):
        async with at_once, AsyncAgentGymEnv("WebArena", server=url) as env:
            await env.reset(options={"task_id": number})
            for action in CHECKS[number][1]:
                text = action.replace("__SHOPPING__", shop)
                _, reward, terminated, _, info = await env.step(f"Action: ```{text}```")
            return reward, info["success"], terminated, "fault" in info

    async def play_all():
        return await asyncio.gather(*map(play, range(len(CHECKS))))

    for (check, actions, solved), found in zip(CHECKS, asyncio.run(play_all()), strict=True):
        assert found == (float(solved), solved, True, False), (check, actions)
