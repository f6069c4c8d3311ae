"""One attempt for each task of SQLGym, however statements overlap."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

from agentgym_gym import AgentGymEnv
from agentgym_gym.envs.sqlgym import SQLGYM
from agentgym_gym.evaluate import load_oracle


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
