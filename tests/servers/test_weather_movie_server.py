"""The Weather and Movie servers over real sockets, held against what AgentGym's were recorded to answer."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

from agentgym_gym import AgentGymEnv
from agentgym_gym.envs.movie import MOVIE
from agentgym_gym.envs.weather import WEATHER
from agentgym_gym.errors import BadOption
from agentgym_gym.evaluate import load_oracle
from agentgym_gym.evaluate.runner import evaluate
from agentgym_gym.servers import server_kind
from agentgym_gym.servers.local import LocalServer
from agentgym_gym.servers.movie.questions import KINDS as MOVIE_KINDS
from agentgym_gym.servers.movie.world import world_of as movies
from agentgym_gym.servers.weather.places import PLACES
from agentgym_gym.servers.weather.questions import KINDS
from agentgym_gym.servers.weather.world import world_of as weather
from agentgym_gym.wire import SERVER_HEADER

BOTH = pytest.mark.parametrize("environment", [WEATHER, MOVIE], ids=lambda each: each.name)
WORLDS = {"Weather": weather, "Movie": movies}
PLAIN = ("text/plain; charset=utf-8", "Internal Server Error")
JSON = {"content-type": "application/json"}


@pytest.fixture(scope="module")
def urls() -> Iterator[dict[str, str]]:
    """Base URLs of the two servers, which are those of one process."""
    server = LocalServer("all")
    base = server.start()
    yield {each.name: f"{base}/{each.name.lower()}" for each in (WEATHER, MOVIE)}
    server.stop()


@pytest.fixture(scope="module")
def clients(urls) -> Iterator[dict[str, httpx.Client]]:
    with contextlib.ExitStack() as stack:
        yield {name: stack.enter_context(httpx.Client(base_url=url)) for name, url in urls.items()}


@pytest.fixture
def client(clients, environment) -> httpx.Client:
    return clients[environment.name]


def create(client: httpx.Client, task_id: int = 0) -> int:
    return client.post("/create", json={"id": task_id}).json()


def step(client: httpx.Client, env_idx: int, action: str) -> dict:
    return client.post("/step", json={"env_idx": env_idx, "action": action}).json()


def said(name: str, arguments: dict) -> str:
    return f"Action: {name} with Action Input: {json.dumps(arguments)}"


# --- as recorded ---


def shape(value: object) -> object:
    """Return the types of a reply, with the names of its fields."""
    if isinstance(value, dict):
        return {key: shape(each) for key, each in value.items()}
    return type(value).__name__


def without_the_world(reply: object) -> object:
    """Return a reply with what it tells of its world taken out: the goal and the weather."""
    if isinstance(reply, dict):
        return {key: without_the_world(each) for key, each in reply.items()}
    return re.sub(r"(?<=goal: ).*", "…", reply) if isinstance(reply, str) else reply


def answers(environment, rows: list[dict], **options: int) -> list[httpx.Response]:
    """Return what a new server answers to recorded requests, one after the other."""
    app = server_kind(environment.name).create_app(**options)

    async def ask() -> list[httpx.Response]:
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://server") as client:
            return [await client.request(row["method"], row["path"], **content_of(row)) for row in rows]

    return asyncio.run(ask())


def content_of(row: dict) -> dict:
    raw, body = row.get("raw_body"), row["json_body"]
    if row["seq"] >= RECORDED_LATER and "env_idx" in body:
        body = {**body, "env_idx": 0}
    sent = {"content": raw, "headers": JSON} if raw else {} if body is None else {"json": body}
    return {"params": row["query"], **sent}


RECORDED_LATER = 100_000  # on another server, where there were more environments

EVERYWHERE: dict[int, str] = {
    7: "200 and 500",  # a negative task id
    9: "another value",  # as that made no environment
    16: "200 and 500",
    43: "done",  # a text with "finish" that calls no `finish`
    46: "done",
}
RUN = "observation, reward, done"  # a call in the input, which is run there; and an episode stays over
OTHERWISE: dict[str, dict[int, str]] = {
    "Weather": {
        **EVERYWHERE,
        **dict.fromkeys((48, 49), "observation"),  # another date and place
        50: "observation",  # there, the network was cut
        **dict.fromkeys((53, 55, 57, 59, 61), "reward"),  # the answers of other tasks
        62: RUN,
    },
    "Movie": {
        **EVERYWHERE,
        **dict.fromkeys((48, 52, 55), "reward"),
        56: RUN,
        RECORDED_LATER: "another value",
        RECORDED_LATER + 2: "observation",
    },
}
"""What is answered otherwise than recorded, on purpose, by the number of the exchange."""


@BOTH
def test_every_recorded_exchange_is_answered_alike(environment, recordings):
    """The same status, types and fields; the same texts too, but for those of the world and those listed."""
    rows = [row for row in recordings(f"{environment.name.lower()}.jsonl") if row["path"] != "/openapi.json"]
    otherwise: dict[int, str] = {}
    for row, reply in zip(rows, answers(environment, rows), strict=True):
        recorded = row["response_json"] if row.get("response_json") is not None else row["response_text"]
        is_json = reply.headers["content-type"] == "application/json"
        told = reply.json() if is_json else reply.text
        if (reply.status_code, shape(told)) != (row["status"], shape(recorded)):
            otherwise[row["seq"]] = f"{row['status']} and {reply.status_code}"
        elif reply.status_code != 422 and without_the_world(told) != without_the_world(recorded):
            fields = [key for key in told if told[key] != recorded[key]] if isinstance(told, dict) else []
            otherwise[row["seq"]] = ", ".join(fields) or "another value"
        else:
            assert reply.headers["content-type"] == row["content_type"]
    assert len(rows) > 55
    assert otherwise == OTHERWISE[environment.name]


@BOTH
def test_it_says_who_it_is(environment, client):
    assert client.get("/").json() == "ok"
    who = client.get("/").headers[SERVER_HEADER]
    assert re.fullmatch(rf"agentgym-gym/\S+ \({environment.name}, seed 0\)", who)


@BOTH
def test_there_is_a_task_for_each_id_and_no_other(environment, client):
    env_idx = create(client)
    goals = [
        client.post("/reset", json={"env_idx": env_idx, "id": task_id}).json()
        for task_id in environment.splits["all"]
    ]
    assert len(set(goals)) == len(goals)
    assert all(task.goal in goal for task, goal in zip(WORLDS[environment.name](0).tasks, goals, strict=True))
    for task_id in (-1, len(goals), 10**9):
        for route, body in (("create", {}), ("reset", {"env_idx": env_idx})):
            reply = client.post(f"/{route}", json={**body, "id": task_id})
            assert (reply.status_code, reply.headers["content-type"], reply.text) == (500, *PLAIN)
    assert client.get("/observation", params={"env_idx": env_idx}).json() == goals[-1]


# --- play ---


@BOTH
def test_the_oracle_wins_through_the_library(environment, urls):
    tasks = [*environment.splits["all"]][:: len(environment.splits["all"]) // 12]
    with contextlib.closing(AgentGymEnv(environment.name, server=urls[environment.name])) as env:
        records = evaluate(env, load_oracle(environment), tasks)
    assert {(record.success, record.score) for record in records} == {(True, 1.0)}
    assert len(records) >= 12


@BOTH
def test_the_solution_of_every_task_pays_once_and_nothing_before_it(environment, client):
    env_idx = create(client)
    for task_id, task in list(enumerate(WORLDS[environment.name](0).tasks))[::9]:
        client.post("/reset", json={"env_idx": env_idx, "id": task_id})
        told = [step(client, env_idx, said(*each)) for each in task.solution]
        assert [(each["reward"], each["done"]) for each in told[:-1]] == [(0.0, False)] * (len(told) - 1)
        assert (told[-1]["reward"], told[-1]["done"]) == (1.0, True)


@BOTH
def test_doing_nothing_and_a_wrong_answer_pay_nothing(environment, client):
    env_idx = create(client, 3)
    told = [step(client, env_idx, said("check_valid_actions", {})) for _ in range(environment.max_turns)]
    assert {(each["reward"], each["done"]) for each in told} == {(0.0, False)}
    assert step(client, env_idx, said("finish", {"answer": "?"}))["done"] is True
    right = WORLDS[environment.name](0).tasks[3].answer
    late = step(client, env_idx, said("finish", {"answer": right}))
    assert late["reward"] == 0.0


@BOTH
def test_check_valid_actions_lists_what_the_grammar_has(environment, client):
    told = step(client, create(client), said("check_valid_actions", {}))["observation"]
    listed = re.findall(r"'(\w+)'", told)
    assert set(listed) == {action.name() for action in environment.grammar.actions}


@BOTH
def test_tasks_played_at_once_do_not_meet(environment, client):
    tasks = WORLDS[environment.name](0).tasks

    def play(task_id: int) -> list[str]:
        env_idx = create(client, task_id)
        return [step(client, env_idx, said(*each))["observation"] for each in tasks[task_id].solution]

    ids = range(0, 64, 4)
    with ThreadPoolExecutor(16) as pool:
        at_once = list(pool.map(play, ids))
    assert at_once == [play(task_id) for task_id in ids]


# --- what does harm ---


@BOTH
@pytest.mark.parametrize(
    "action",
    [
        "",
        "\0",
        "finish",
        "Action: finish with Action Input: ",
        "Action: finish with Action Input: __import__('os').abort()",
        'Action: finish with Action Input: {"answer": (lambda: 1)()}',
        'Action: finish with Action Input: {"answer": ' + "9" * 10_000 + "}",
        "Action: finish with Action Input: " + "[" * 5000 + "]" * 5000,
        "Action: finish with Action Input: {1: 9**9**9}",
        "Action: " * 100_000 + "with Action Input: {}",
        "Action: get_elevation with Action Input: 5",
        'Action: get_movie_cast with Action Input: ["movie_id"]',
        "x" * 1_000_000,
    ],
    ids=range(13),
)
def test_no_action_is_run_or_does_harm(environment, client, action):
    env_idx = create(client)
    told = step(client, env_idx, action)
    assert (told["reward"], told["done"]) == (0.0, False)
    assert len(told["observation"]) < 1000
    assert client.get("/").json() == "ok"


@BOTH
def test_half_a_surrogate_pair_is_an_answer_like_any_other(environment, client):
    told = step(client, create(client), said("finish", {"answer": "\ud800"}))
    assert told == {"observation": "Observation: \ud800\nGive me one action.", "reward": 0.0, "done": True}


@BOTH
def test_a_body_that_is_too_large_is_refused(environment, client):
    assert client.post("/step", json={"env_idx": 0, "action": "x" * 1_048_576}).status_code == 413


@BOTH
@pytest.mark.parametrize("option", ["max_envs", "max_body_bytes", "seed"])
def test_an_option_out_of_range_is_refused(environment, option):
    with pytest.raises(BadOption, match=option):
        server_kind(environment.name).create_app(**{option: -1})


@BOTH
def test_another_seed_is_another_server(environment):
    rows = [{"method": "POST", "path": path, "json_body": body} for path, body in CREATE_AND_RESET]
    made, goal = answers(environment, [{**row, "seq": 0, "query": None} for row in rows], seed=1)
    assert made.headers[SERVER_HEADER].endswith(f"({environment.name}, seed 1)")
    assert WORLDS[environment.name](1).tasks[7].goal in goal.json()


CREATE_AND_RESET = [("/create", {"id": 0}), ("/reset", {"env_idx": 0, "id": 7})]


def test_the_pages_say_how_much_there_is():
    assert f"{len(KINDS)} kinds" in WEATHER.local_quirks
    assert 115 <= len(PLACES) <= 125
    library = movies(0).library
    assert f"{len(library.films)} films and {len(library.people)} people" in MOVIE.local_quirks
    assert f"{len(MOVIE_KINDS)} kinds" in MOVIE.local_quirks.replace("\n", " ")
