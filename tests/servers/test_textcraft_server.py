"""The TextCraft server over a real socket, held against what AgentGym's own was recorded to answer."""

from __future__ import annotations

import http.client
import json
import re
from collections.abc import Iterator

import httpx
import pytest

from in_process import replayed
from local_game import LocalGame

JSON = {"content-type": "application/json"}

UNLIKE = {
    "/openapi.json": "written by the framework",
    "/commands": "always 500 there; an answer here",
    "/goal": "always 500 there; an answer here",
}
"""Recorded exchanges that are not compared, by path, and why."""

TASKS = 544


@pytest.fixture(scope="module")
def index_of() -> dict[str, int]:
    """The index of each goal."""
    with LocalGame("TextCraft") as game:
        return {goal_of(game.reset(task).observation): task for task in range(TASKS)}


@pytest.fixture(scope="module")
def shared(local_url) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=local_url("textcraft")) as client:
        yield client


def create(client: httpx.Client) -> int:
    return client.post("/create", json={}).json()["id"]


def step(client: httpx.Client, env_id: int, action: str) -> dict:
    return client.post("/step", json={"id": env_id, "action": action}).json()


def goal_of(text: str) -> str:
    return text.rpartition("Goal: craft ")[2].rstrip(".")


# --- as recorded ---


def shape(value):
    """Keys and types, all the way down."""
    if isinstance(value, dict):
        return {
            key: shape(each) for key, each in value.items() if key != "url"
        }  # of older frameworks' errors
    return [shape(each) for each in value] if isinstance(value, list) else type(value).__name__


def told(value):
    """The part of a reply that follows from the requests to a server in any directory order."""
    if isinstance(value, dict) and isinstance(value.get("detail"), list):
        return [(each["type"], each["loc"]) for each in value["detail"]]  # its wording is the framework's
    if isinstance(value, dict):
        return {key: told(each) for key, each in value.items()}
    if isinstance(value, str) and "Goal: craft " in value:
        return re.sub(r"(?s)Crafting commands:\n.+\n\nGoal: craft .+\.", "a task", value)
    return value


def same_task(exchange: dict, index_of: dict[str, int]) -> dict:
    """The body to send here: a recorded reset to a task by index is one to the index of its goal here."""
    body = exchange["json_body"]
    if exchange["path"] == "/reset" and exchange["status"] == 200 and type(body.get("data_idx")) is int:
        goal = goal_of(exchange["response_json"].get("observation", ""))
        if goal and 0 <= body["data_idx"] < TASKS:
            return {**body, "data_idx": index_of[goal]}
    return body


@pytest.mark.slow
def test_every_recorded_exchange_is_answered_alike(recordings, index_of):
    compared = 0
    rows = recordings("textcraft.jsonl")
    replies = replayed("textcraft", [{**row, "json_body": same_task(row, index_of)} for row in rows])
    for exchange, reply in zip(rows, replies, strict=True):
        if exchange["path"] in UNLIKE:
            continue
        where = f"seq {exchange['seq']}"
        recorded, answered = exchange["response_json"], reply.json()
        assert (reply.status_code, shape(answered)) == (exchange["status"], shape(recorded)), where
        assert reply.headers["content-type"] == exchange["content_type"], where
        if exchange.get("note") != "data_idx null":  # there, it is Python's own complaint
            assert told(answered) == told(recorded), where
        if same_task(exchange, index_of) != exchange["json_body"]:
            assert goal_of(answered["observation"]) == goal_of(recorded["observation"]), where
        compared += 1
    assert compared == 376 - 5


@pytest.mark.slow
def test_every_recorded_game_goes_the_same_way(shared, recordings, index_of):
    env_id = create(shared)
    plain = http.client.HTTPConnection(
        shared.base_url.host, shared.base_url.port
    )  # httpx takes twice as long
    won = set()
    for exchange in recordings("textcraft_all544.jsonl.gz"):
        if exchange["path"] == "/create":
            continue
        body = {**same_task(exchange, index_of), "id": env_id}
        plain.request("POST", f"/textcraft{exchange['path']}", json.dumps(body), JSON)
        answered = json.load(plain.getresponse())
        recorded = exchange["response_json"]
        if exchange["path"] == "/reset":
            goal = goal_of(answered["observation"])
            assert goal == goal_of(recorded["observation"])
            recorded = {**recorded, "id": env_id}
        elif answered["reward"] == 1:
            won.add(goal)
        assert told(answered) == told(recorded), f"seq {exchange['seq']}"
    plain.close()
    assert len(won) == TASKS


# --- what is different on purpose ---


def test_commands_and_goal_answer(shared):
    env_id = create(shared)
    text = shared.post("/reset", json={"id": env_id, "data_idx": 7}).json()["observation"]
    commands = shared.get("/commands", params={"id": env_id}).json()
    goal = shared.get("/goal", params={"id": env_id}).json()
    name = goal.removeprefix("minecraft:").replace("_", " ")
    assert goal == f"minecraft:{name.replace(' ', '_')}"
    assert text == f"Crafting commands:\n{commands}\n\nGoal: craft {name}."


@pytest.mark.parametrize(
    "action",
    [
        "get " + "9" * 4301 + " bamboo",
        "craft " + "9" * 4301 + " x using 1 bamboo",
        "craft x using " + "0" * 4301 + " x",
    ],
)
def test_a_number_that_breaks_the_original_is_a_refusal(shared, action):
    assert step(shared, create(shared), action) == {
        "observation": "Could not use a number of more than 600 digits",
        "reward": 0,
        "done": False,
    }


def test_no_index_leaves_the_game_as_it_was(shared):
    env_id = create(shared)
    step(shared, env_id, "get 1 bamboo")
    reply = shared.post("/reset", json={"id": env_id, "data_idx": None}).json()
    assert reply == {"error": "data_idx must be an integer, not null."}
    assert step(shared, env_id, "inventory")["observation"] == "Inventory: [bamboo] (1) "
