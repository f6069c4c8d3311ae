"""The BabyAI server over a real socket, held against what AgentGym's own was recorded to answer."""

from __future__ import annotations

import base64
from collections import Counter
from collections.abc import Iterator

import httpx
import pytest

from agentgym_gym.envs.babyai import BABYAI
from agentgym_gym.evaluate import load_oracle
from in_process import replayed
from local_game import LocalGame

JSON = {"content-type": "application/json"}


@pytest.fixture(scope="module")
def url(local_url) -> str:
    return local_url("babyai")


@pytest.fixture(scope="module")
def client(url: str) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=url) as client:
        yield client


def create(client: httpx.Client) -> int:
    return client.post("/create").json()["id"]


def reset(client: httpx.Client, env_id: int, task: int) -> dict:
    return client.post("/reset", json={"id": env_id, "data_idx": task}).json()


def step(client: httpx.Client, env_id: int, action: str) -> dict:
    return client.post("/step", json={"id": env_id, "action": action}).json()


# --- as recorded ---


OVER = "\n The task is completed."


def difference(recorded: dict, reply: dict) -> str:
    """Return how a recorded reply differs from ours, which must be in one of the ways that the page lists."""
    if "error" in reply:
        assert "has finished" in reply["error"]
        return "is over here"
    text, reward, done = reply["observation"], reply["reward"], reply["done"]
    if (text, reward, done) == (recorded["observation"], recorded["reward"], recorded["done"]):
        return "equal"
    if OVER not in text and done:
        assert text == recorded["observation"]
        assert (reward, recorded["done"]) == (0, False)
        return "ends at the limit"
    assert (done, recorded["done"]) == (True, False)
    assert text.replace(OVER, "") == recorded["observation"].replace(OVER, "")
    if OVER in recorded["observation"]:
        assert reward == recorded["reward"] <= 0.5
        return "keeps the end"
    assert recorded["reward"] == 0
    return "sees the goal" if reward else "sees the failure"


@pytest.mark.slow
def test_every_recorded_observation_reward_and_end_is_equal_but_for_what_the_page_lists(recordings):
    rows = [
        row
        for row in recordings("babyai.jsonl")
        if row["path"] in ("/create", "/reset", "/step")
        and row["status"] == 200
        and "error" not in row["response_json"]
    ]
    replies = replayed("babyai", rows)
    seen, paid = Counter(), set()
    for row, reply in zip(rows, replies, strict=True):
        if row["path"] == "/create":
            assert reply.json() == row["response_json"]
            continue
        recorded, env_id = row["response_json"], row["json_body"]["id"]
        if row["path"] == "/reset":
            paid.discard(env_id)
        seen[difference(recorded, reply.json())] += 1
        if env_id not in paid:  # then it adds up
            assert recorded["score"] == recorded["reward"]
        if recorded["reward"]:
            paid.add(env_id)
    assert seen == {
        "equal": 1059,
        "is over here": 323,
        "sees the goal": 4,
        "sees the failure": 1,
        "ends at the limit": 1,
        "keeps the end": 1,
    }


def is_of_faults(row: dict) -> bool:
    """Return whether it is not of a game, and thus not in the test above."""
    env_id = (row["json_body"] or row["query"] or {}).get("id", 0)
    # The second is closed without a reset, which frees it here.
    return row["path"] != "/openapi.json" and env_id not in (2, 3, 4) and (env_id != 1 or row["seq"] <= 7)


def test_recorded_statuses_and_shapes_of_faults(recordings):
    compared = Counter()
    rows = [row for row in recordings("babyai.jsonl") if is_of_faults(row)]
    for exchange, reply in zip(rows, replayed("babyai", rows), strict=True):
        recorded, path = exchange["response_json"], exchange["path"]
        where = f"seq {exchange['seq']}"
        assert reply.status_code == exchange["status"], where
        assert reply.headers["content-type"] == exchange["content_type"], where
        said = reply.json()
        assert type(said) is type(recorded), where
        if path == "/close":
            assert recorded is False
        elif isinstance(said, dict):
            assert said.keys() == recorded.keys(), where
            if recorded.get("error", "0") not in ("0", "1"):  # which is the id, and no reason
                assert said == recorded, where
        if reply.status_code == 422:
            assert [(e["type"], e["loc"]) for e in said["detail"]] == [
                (e["type"], e["loc"]) for e in recorded["detail"]
            ]
        elif path == "/render" and isinstance(said, str):
            # Both are of the same size; how they are packed is each server's own.
            assert (
                base64.b64decode(said.partition(",")[2])[:24]
                == (base64.b64decode(recorded.partition(",")[2])[:24])
            )
        elif isinstance(said, dict) and "id" in said:
            assert said == recorded
        compared[path] += 1
    assert sum(compared.values()) == 49


# --- what is different on purpose ---


def test_before_the_first_reset_there_is_nothing_to_step_or_draw(client):
    env_id = create(client)
    said = {"error": f"The environment {env_id} has no task yet: reset it first."}
    assert step(client, env_id, "turn left") == said
    assert client.post("/render", json={"id": env_id}).json() == said
    assert client.get("/observation", params={"id": env_id}).json()["observation"] == (
        "Environment not initialized"
    )


def test_an_environment_that_was_never_reset_can_be_closed(client):
    env_id = create(client)
    assert env_id in client.get("/list_envs").json()
    assert client.post("/close", json={"id": env_id}).json() is True
    assert env_id not in client.get("/list_envs").json()
    assert client.post("/close", json={"id": env_id}).json() is False
    assert step(client, env_id, "turn left") == {"error": f"The id {env_id} is not valid."}


def test_a_refused_reset_leaves_the_game_as_it_was(client):
    env_id = create(client)
    reset(client, env_id, 3)
    before = client.get("/observation", params={"id": env_id}).json()
    refused = "Seed must be greater or equal to zero, actual value: -"  # in the words of Gymnasium
    for task, value in ((-1, 1), (-40, 1), (-41, 2)):
        assert reset(client, env_id, task)["error"] == f"{refused}{value}"
    assert "too large" in reset(client, env_id, 10**4000)["error"]
    assert client.get("/observation", params={"id": env_id}).json() == before


def test_a_task_id_may_be_large(client):
    assert "error" not in reset(client, create(client), 10**29)


def test_nothing_of_a_solution_is_in_a_reply(client):
    env_id = create(client)
    assert set(reset(client, env_id, 7)) == {"observation", "reward", "score", "done", "deleted"}
    assert set(step(client, env_id, "turn left")) == {"observation", "reward", "score", "done"}


# --- the oracle ---


def test_the_oracle_plays_by_the_seed_of_the_server(url):
    oracle = load_oracle(BABYAI)
    said = [f"agentgym-servers/3 (BabyAI, seed {seed})" for seed in (0, 3)]
    actions = []
    for served_by in said:
        oracle.reset(None, "", {"task_id": 20, "served_by": served_by})
        actions.append(str(oracle.act("", {})))
    with LocalGame("BabyAI", seed=3) as game:
        assert actions[1] in game.reset(20).available_actions
    assert actions[0] != actions[1]
