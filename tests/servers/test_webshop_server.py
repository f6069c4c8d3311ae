"""The WebShop server over a real socket, held against what AgentGym's own was recorded to answer."""

from __future__ import annotations

import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator

import httpx
import pytest

from agentgym_gym.envs.webshop import WEBSHOP
from agentgym_gym.local_servers import server_kind
from clock import cpu_seconds
from in_process import posted
from local_game import LocalGame
from peak_memory import PEAK

JSON = {"content-type": "application/json"}


@pytest.fixture(scope="module")
def url(local_url) -> str:
    return local_url("webshop")


@pytest.fixture(scope="module")
def shared(url: str) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=url) as client:
        yield client


@pytest.fixture
def app():
    """A server of one test's own, without a socket."""
    return server_kind("webshop").app()


def create(client: httpx.Client) -> int:
    return client.post("/create").json()


def reset(client: httpx.Client, env_id: int, task: int | None) -> str:
    return client.post("/reset", json={"env_idx": env_id, "session_id": task}).json()[0]


def step(client: httpx.Client, env_id: int, action: str) -> dict:
    return client.post("/step", json={"env_idx": env_id, "action": action}).json()


def see(client: httpx.Client, route: str, env_id: int):
    return client.get(f"/{route}", params={"env_idx": env_id}).json()


# --- as recorded ---


PAGES = {
    "first": r"WebShop \[SEP\] Instruction: \[SEP\] .+? \[SEP\] Search",
    "results": r"Instruction: \[SEP\] .+? \[SEP\] Back to Search \[SEP\] Page \d+ \(Total results: \d+\)"
    r"( \[SEP\] < Prev)? \[SEP\] Next >"
    r"( \[SEP\] B[0-9A-Z]{9} \[SEP\] [^\[]+ \[SEP\] \$[\d.]+( to \$[\d.]+)?)*",
    "product": r"Instruction: \[SEP\] .+? \[SEP\] Back to Search \[SEP\] < Prev( \[SEP\] [^\[]+)* \[SEP\] "
    r"Price: \$[\d.]+( to \$[\d.]+)? \[SEP\] Rating: [^\[]+ \[SEP\] Description "
    r"\[SEP\] Features \[SEP\] Reviews \[SEP\] Buy Now",
    "sub-page": r"Instruction: \[SEP\] .+? \[SEP\] Back to Search \[SEP\] < Prev( \[SEP\] [^\[]+)*",
    "receipt": r"Thank you for shopping with us! \[SEP\] .+ \[SEP\] asin \[SEP\] B[0-9A-Z]{9} \[SEP\] "
    r"options \[SEP\] \{.*\} \[SEP\] attrs .+ \[SEP\] Your score \(min 0.0, max 1.0\) \[SEP\] [\d.]+ "
    r"\[SEP\] Reward Details \[SEP\] None",
    "instruction": r"Instruction: ?[^\[]+",
}


def kind_of(text: str) -> str:
    """Return which page a text is, or the text."""
    return next((kind for kind, pattern in PAGES.items() if re.fullmatch(pattern, text)), text)


def shape(reply, status: int):
    """The form of a reply: the pages by their kind, numbers by their type."""
    if status == 422:
        return [(each["type"], each["loc"]) for each in reply["detail"]]
    if isinstance(reply, dict):
        return {key: shape(value, status) for key, value in reply.items()}
    if isinstance(reply, list):
        return [shape(value, status) for value in reply]
    if isinstance(reply, str):
        return kind_of(reply)
    return reply if isinstance(reply, bool) or reply is None else type(reply).__name__


BUTTONS = ("back to search", "< prev", "next >", "description", "features", "reviews", "buy now", "search")


class Translated:
    """Converts recorded requests to requests of the same meaning here: other ids, products and options."""

    def __init__(self) -> None:
        self.ids: dict[int, int] = {}
        self.theirs: list[str] = []

    def env(self, fields: dict | None) -> dict | None:
        if not fields or "env_idx" not in fields:
            return fields
        return {**fields, "env_idx": self.ids.get(fields["env_idx"], fields["env_idx"])}

    def action(self, action: str, clickables: list[str]) -> str:
        """Click the product or option at the same place of the page, if there is one."""
        found = re.fullmatch(r"click\[(.+)\]", action)
        if not found or found[1] not in self.theirs or found[1] in BUTTONS:
            return action
        theirs, ours = ([e for e in each if e not in BUTTONS] for each in (self.theirs, clickables))
        place = theirs.index(found[1])
        return f"click[{ours[place] if place < len(ours) else 'nothing'}]"


@pytest.mark.slow
def test_every_recorded_exchange_is_answered_alike(shared, recordings):
    """The same status, types, keys and kinds of page."""
    seen, translated, held = Counter(), Translated(), len(shared.get("/list_envs").json())
    first = None
    for exchange in recordings("webshop.jsonl"):
        if exchange["path"] == "/openapi.json":
            continue  # written by the framework
        body, where = translated.env(exchange["json_body"]), f"seq {exchange['seq']}"
        if exchange["path"] == "/step" and isinstance((body or {}).get("action"), str) and first is not None:
            clickables = see(shared, "available_actions", first)["clickables"]
            body = {**body, "action": translated.action(body["action"], clickables)}
        raw = exchange.get("raw_body")
        reply = shared.request(
            exchange["method"],
            exchange["path"],
            params=translated.env(exchange["query"]),
            content=raw,
            json=None if raw else body,
            headers=JSON if raw else None,
        )
        assert (reply.status_code, reply.headers["content-type"]) == (
            exchange["status"],
            exchange["content_type"],
        ), where
        seen[reply.status_code] += 1
        recorded = exchange.get("response_json")
        if recorded is None:
            assert reply.text == exchange["response_text"], where
        elif exchange["path"] == "/available_actions" and reply.status_code == 200:
            translated.theirs = recorded["clickables"]
            assert reply.json().keys() == recorded.keys(), where
            assert reply.json()["has_search_bar"] == recorded["has_search_bar"], where
            assert [each for each in reply.json()["clickables"] if each in BUTTONS] == [
                each for each in recorded["clickables"] if each in BUTTONS
            ], where
        elif exchange["path"] == "/list_envs":
            assert len(reply.json()) - held == len(recorded), where
        else:
            assert shape(reply.json(), reply.status_code) == shape(recorded, exchange["status"]), where
        if exchange["path"] == "/create":
            translated.ids[recorded] = reply.json()
            first = reply.json() if first is None else first
    assert seen[200] > 300
    assert seen[500] == 9
    assert seen[422] == 8


def test_the_routes_are_agentgyms(shared):
    paths = shared.get("/openapi.json").json()["paths"]
    assert {path: list(methods) for path, methods in paths.items()} == {
        **{f"/{each}": ["post"] for each in ("create", "reset", "step")},
        **{
            f"/{each}": ["get"]
            for each in ("", "list_envs", "observation", "available_actions", "instruction_text", "state")
        },
    }


# --- what is different on purpose ---


def ask(app, *calls: tuple[str, dict]) -> list:
    return [reply.json() for reply in posted(app, *calls)]


def test_ids_are_others_in_a_server_that_was_restarted(app):
    """Which the wire relies on: it takes an id that it holds for proof that the server is full."""
    assert WEBSHOP.wire.reissues_ids
    assert not WEBSHOP.wire.repeats_ids
    again = [ask(each, ("/create", {})) for each in (app, server_kind("webshop").app())]
    assert again[0] != again[1]


def test_a_negative_task_counts_from_the_end(shared):
    env_id = create(shared)
    assert reset(shared, env_id, -1) == reset(shared, env_id, WEBSHOP.task_ids[-1])


def test_without_a_task_it_is_one_that_depends_on_nothing_else(app):
    """But how many environments were made before, and how often it was asked so."""
    other = server_kind("webshop").app()
    ids = [ask(each, *[("/create", {})] * 3) * 2 for each in (app, other)]
    any_task = [[("/reset", {"env_idx": env_id}) for env_id in each] for each in ids]
    first = ask(app, *any_task[0])
    known = [("/reset", {"env_idx": ids[1][0], "session_id": task}) for task in range(6)]
    calls = [call for both in zip(known, reversed(any_task[1]), strict=True) for call in both]
    second = ask(other, *calls)[1::2]
    assert len({page for page, _ in first}) == 6
    assert sorted(first) == sorted(second)


def test_nothing_that_is_searched_for_makes_it_fail(shared):
    env_id = create(shared)
    for words in ("<a>", "<c>", "<q> x", "<r>", "<a> \x00", "'" * 900, " ".join(map(str, range(900)))):
        assert kind_of(step(shared, env_id, f"search[{words}]")["state"]) == "results"


# --- what comes in ---


@pytest.mark.parametrize(
    "action",
    [
        b'"search[\\u0000\\ud800]"',
        b'"click[\\ud800]"',
        b'"search[' + b"a " * 500_000 + b']"',
    ],
    ids=range(3),
)
def test_actions_as_agents_write_them(shared, action):
    env_id = create(shared)
    body = b'{"env_idx": %d, "action": %s}' % (env_id, action)
    reply = shared.post("/step", content=body, headers=JSON)
    assert (reply.status_code, reply.json()["reward"]) == (200, 0.0)
    assert kind_of(reply.json()["state"]) in {"first", "results"}


# --- played through the library ---


def test_a_task_and_its_pages_are_the_same_in_every_process(shared, app):
    actions = ("search[red mug]", "click[next >]", "click[< prev]", "click[back to search]")
    env_id = create(shared)
    told = [reset(shared, env_id, 4321), *(step(shared, env_id, action) for action in actions)]
    (other,) = ask(app, ("/create", {}))
    steps = [("/step", {"env_idx": other, "action": action}) for action in actions]
    page, *rest = ask(app, ("/reset", {"env_idx": other, "session_id": 4321}), *steps)
    assert [page[0], *rest] == told


# --- how much it takes ---


@pytest.mark.slow
def test_a_step_is_quick():
    """Less than 5 ms of processor time: pages, clicks and the reward."""
    with LocalGame("WebShop") as game:
        games = {task: game.win(task)[0] for task in WEBSHOP.task_ids[::300]}
        steps = sum(map(len, games.values()))

        def play():
            for task, actions in games.items():
                game.play(task, actions)

        assert cpu_seconds(play, enough=0.005 * steps) <= 0.01 * steps


MEMORY = (
    PEAK
    + """
import asyncio, sys
import httpx
from agentgym_gym.local_servers import server_kind
async def fill():
    app = server_kind("webshop").app()
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://server") as client:
        for number in range(500):
            env_id = (await client.post("/create")).json()
            for body in ({"action": "search[red mug tea]"}, {"action": "click[next >]"}):
                reply = await client.post("/step", json={"env_idx": env_id, **body})
                assert reply.status_code == 200
        assert len((await client.get("/list_envs")).json()) == 500
asyncio.run(fill())
print(peak_memory())
"""
)


@pytest.mark.slow
def test_five_hundred_environments_take_no_more_than_they_may(report_at_end):
    ended = subprocess.run([sys.executable, "-c", MEMORY], capture_output=True, text=True, check=True)
    taken = int(ended.stdout)
    report_at_end(f"500 environments of WebShop take {taken / 1e6:.0f} MB with the server")
    assert taken < 1e9
