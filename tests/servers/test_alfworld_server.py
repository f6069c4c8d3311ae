"""The ALFWorld server over a real socket: a game from reset to end, its views, and what it refuses."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from agentgym_gym import AgentGymEnv
from local_game import LocalGame

TASK = 2421


@pytest.fixture(scope="module")
def url(local_url) -> str:
    return local_url("alfworld")


@pytest.fixture(scope="module")
def client(url: str) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=url, timeout=60) as client:
        yield client


def create(client: httpx.Client) -> int:
    return client.post("/create").json()["id"]


def reset(client: httpx.Client, env_id: int, game: int, world_type: str = "Text") -> Any:
    return client.post("/reset", json={"id": env_id, "game": game, "world_type": world_type}).json()


def step(client: httpx.Client, env_id: int, action: str) -> Any:
    return client.post("/step", json={"id": env_id, "action": action}).json()


def view(client: httpx.Client, name: str, env_id: int) -> Any:
    return client.get(f"/{name}", params={"id": env_id}).json()


def test_before_a_reset_there_is_nothing_to_see_or_to_play(client):
    env_id = create(client)
    missing = {"error": f"The environment {env_id} has no game yet: reset it first."}
    assert view(client, "observation", env_id) == view(client, "available_actions", env_id) == missing
    assert step(client, env_id, "look") == missing
    assert view(client, "detail", env_id) == {"done": False, "reward": 0, "deleted": False}
    assert env_id in client.get("/list_envs").json()


def test_a_game_is_won_and_then_over(client):
    env_id = create(client)
    start = reset(client, env_id, TASK)
    assert start["id"] == env_id
    assert re.fullmatch(r"(pick|look)\w+-[A-Z]\w*-None-[A-Z]\w*-\d+/trial_\w+", start["task_type"])
    assert re.search(r"\nYour task is to: [^.]+\.$", start["observation"])
    assert view(client, "available_actions", env_id) == start["available_actions"]
    with LocalGame("ALFWorld") as game:
        *actions, last = game.win(TASK)[0]
    for action in actions:
        turn = step(client, env_id, str(action))
        assert (turn["reward"], turn["done"]) == (0, False)
        assert turn["observation"] == view(client, "observation", env_id)
    detail = view(client, "detail", env_id)
    assert detail == {**turn, "game": TASK, "world_type": "Text", "deleted": False}
    won = step(client, env_id, str(last))
    assert (won["reward"], won["done"]) == (1, True)
    over = {"error": f"The task with environment {env_id} has finished."}
    assert step(client, env_id, "look") == over
    assert [view(client, name, env_id) for name in ("observation", "available_actions", "detail")] == [
        over
    ] * 3
    assert reset(client, env_id, TASK) == start


@pytest.mark.parametrize("world_type", ["Embody", "Hybrid"])
def test_the_world_type_has_no_effect(client, world_type):
    env_id = create(client)
    assert reset(client, env_id, 5, world_type) == reset(client, env_id, 5)


def test_a_refused_reset_leaves_the_game_as_it_was(client):
    env_id = create(client)
    reset(client, env_id, 5)
    before = view(client, "detail", env_id)
    refused = 'world_type must be one of "Text", "Embody" and "Hybrid"'
    assert reset(client, env_id, 5, "text") == {"error": refused}
    for game in (-1, 2620, 30_000, 10**30):
        assert reset(client, env_id, game) == {"error": "Game index out of range: 0 to 2619."}
    assert view(client, "detail", env_id) == before
    assert reset(client, 10**9, 0) == {"error": "The id 1000000000 is not valid."}


def test_environments_of_one_task_do_not_share_their_house(client):
    one, other = create(client), create(client)
    start = reset(client, one, 7)
    assert reset(client, other, 7)["observation"] == start["observation"]
    go = next(action for action in start["available_actions"] if action.startswith("go to"))
    step(client, one, go)
    assert view(client, "available_actions", other) == start["available_actions"]


@pytest.mark.parametrize(("split", "parity"), [("test_seen", 0), ("test_unseen", 1)])
def test_the_parts_of_the_test_tasks_are_selected_like_splits(url, split, parity):
    with contextlib.closing(AgentGymEnv("ALFWorld", server=url, split=split)) as env:
        for seed in range(3):
            _, info = env.reset(seed=seed)
            assert info["task_id"] >= 2420
            assert info["task_id"] % 2 == parity
