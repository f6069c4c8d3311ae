"""The SQLGym server over a real socket, held against what AgentGym's own was recorded to answer."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

from agentgym_gym import AgentGymEnv
from agentgym_gym.envs.sqlgym import SQLGYM
from agentgym_gym.evaluate import load_oracle
from agentgym_gym.local_servers import server_kind
from in_process import posted
from local_game import solution

JSON = {"content-type": "application/json"}


@pytest.fixture(scope="module")
def url(local_url) -> str:
    return local_url("sqlgym")


@pytest.fixture(scope="module")
def client(url: str) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=url, timeout=60) as client:
        yield client


def begin(client: httpx.Client, item_id: int) -> int:
    """Make an environment and start a task in it."""
    env_idx = client.post("/create").json()
    observation, info = client.post("/reset", json={"env_idx": env_idx, "item_id": item_id}).json()
    assert info is None
    assert client.get("/observation", params={"env_idx": env_idx}).json() == observation
    return env_idx


def step(client: httpx.Client, env_idx: int, action: str) -> dict:
    return client.post("/step", json={"env_idx": env_idx, "action": action}).json()


def test_no_reply_gives_the_answer_away(client):
    sql = solution("SQLGym", 77)[0].sql
    env_idx = begin(client, 77)
    said = [
        client.get("/observation", params={"env_idx": env_idx}).text,
        client.post("/step", json={"env_idx": env_idx, "action": "SELECT 1"}).text,
        client.post("/reset", json={"env_idx": env_idx, "item_id": 77}).text,
    ]
    assert not any(sql in text for text in said)
    assert json.loads(said[1])["info"] == {"ground_truth": ""}


def test_no_id_is_given_twice_and_all_are_listed(client):
    made = [client.post("/create").json() for _ in range(40)]
    assert len(set(made)) == 40
    assert set(made) <= set(client.get("/list_envs").json())


@pytest.mark.slow
def test_a_statement_without_end_is_cut_and_others_do_not_notice(client):
    endless = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT count(*) FROM c"
    hogs, ids = [begin(client, 0) for _ in range(2)], range(8, 9_428, 800)
    others = [(begin(client, item_id), solution("SQLGym", item_id)[0].sql) for item_id in ids]
    with ThreadPoolExecutor(16) as pool:
        cut = [pool.submit(step, client, env_idx, endless) for env_idx in hogs]
        told = list(pool.map(lambda each: step(client, *each)["reward"], others))
    assert told == [1.0] * len(others)
    assert [each.result()["state"] for each in cut] == ["interrupted"] * 2


def test_more_than_eight_are_played_at_once_through_the_library(url):
    oracle = load_oracle(SQLGYM)
    with contextlib.ExitStack() as stack:
        envs = [stack.enter_context(contextlib.closing(AgentGymEnv("SQLGym", server=url))) for _ in range(12)]
        begun = [env.reset(options={"task_id": 800 * number}) for number, env in enumerate(envs)]
        scores = []
        for env, (observation, info) in zip(envs, begun, strict=True):
            oracle.reset(env, observation, info)
            scores.append(env.step(oracle.act(observation, info))[1])
    assert scores == [1.0] * 12


def test_a_folder_of_bird_is_played_and_not_changed(bird):
    database = bird / "dev_databases" / "zoo" / "zoo.sqlite"
    before = database.read_bytes()
    app = server_kind("sqlgym").app(data=bird)
    (env_idx,) = (reply.json() for reply in posted(app, ("/create", None)))
    told = posted(
        app,
        ("/reset", {"env_idx": env_idx, "item_id": 9_428}),
        ("/step", {"env_idx": env_idx, "action": "SELECT 2"}),
        ("/step", {"env_idx": env_idx, "action": "DELETE FROM animal"}),
        ("/reset", {"env_idx": env_idx, "item_id": 0}),
    )
    assert told[0].json()[0].endswith("\n\nHow many?")
    assert (told[1].json()["state"], told[1].json()["reward"]) == ("[(2,)]", 1.0)
    assert told[2].json()["state"] == "not authorized"
    assert told[3].status_code == 500
    assert told[0].headers["agentgym-server"].endswith("(SQLGym, data)")
    assert database.read_bytes() == before
    app.state.workers.close()
