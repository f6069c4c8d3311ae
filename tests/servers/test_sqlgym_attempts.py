"""SQLGym's tasks: one attempt for each, however statements overlap, and as many as BIRD has."""

from __future__ import annotations

import contextlib
import json
import sqlite3
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

from agentgym_gym import AgentGymEnv, errors
from agentgym_gym.envs.sqlgym import SQLGYM
from agentgym_gym.evaluate import load_oracle
from agentgym_gym.local_servers import server_kind
from in_process import posted


def right_statement(url, item_id):
    """Return the statement that scores, as it is sent to the server."""
    env, oracle = AgentGymEnv("SQLGym", server=url), load_oracle(SQLGYM)
    observation, info = env.reset(options={"task_id": item_id})
    oracle.reset(env, observation, info)
    statement = env.read(oracle.act(observation, info))
    env.close()
    return statement


@pytest.mark.parametrize("item_id", [5, 77])
def test_of_statements_that_come_together_one_scores_at_most(local_url, item_id):
    url = local_url("sqlgym")
    statement = right_statement(url, item_id)
    with httpx.Client(base_url=url, timeout=60) as client:
        env_idx = client.post("/create").json()
        client.post("/reset", json={"env_idx": env_idx, "item_id": item_id})

        def score(number):
            return client.post("/step", json={"env_idx": env_idx, "action": statement}).json()["reward"]

        with ThreadPoolExecutor(6) as threads:
            rewards = list(threads.map(score, range(6)))
    assert sorted(rewards) == [0.0] * 5 + [1.0]


@pytest.mark.parametrize("more", [0, 1])
def test_a_file_of_as_many_questions_as_bird_has_is_served_whole(tmp_path, more):
    folder = tmp_path / "dev_databases" / "zoo"
    folder.mkdir(parents=True)
    with contextlib.closing(sqlite3.connect(folder / "zoo.sqlite")) as connection:
        connection.executescript("CREATE TABLE animal (id INTEGER);")
    ids = SQLGYM.splits["dev"]
    questions = [
        {"db_id": "zoo", "question": f"How many, {number}?", "evidence": "", "SQL": "SELECT 1"}
        for number in range(len(ids) + more)
    ]
    (tmp_path / "dev.json").write_text(json.dumps(questions), encoding="utf-8")
    if more:
        with pytest.raises(errors.BadOption, match=rf"{len(questions)} questions"):
            server_kind("sqlgym").app(data=tmp_path)
        return
    app = server_kind("sqlgym").app(data=tmp_path)
    (env_idx,) = (reply.json() for reply in posted(app, ("/create", None)))
    (told,) = posted(app, ("/reset", {"env_idx": env_idx, "item_id": max(ids)}))
    assert told.json()[0].endswith(f"How many, {len(ids) - 1}?")
    app.state.workers.close()
