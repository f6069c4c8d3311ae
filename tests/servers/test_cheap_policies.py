"""No cheap policy wins the tasks of a local server: constant answers, the page, random actions."""

from __future__ import annotations

import asyncio
from functools import partial

import pytest

from agentgym_gym.aio import AsyncAgentGymEnv
from agentgym_gym.catalogue import environments
from agentgym_gym.evaluate import load_oracle, validate

QUICK = {"Academia", "Maze", "Movie", "Sheet", "TextCraft", "TODOList", "Weather", "Wordle"}
# The test splits of these have thousands of tasks, or a task takes long.
MOST_TASKS = {
    "MiniWoB": 300,
    "SciWorld": 200,
    "SearchQA": 600,
    "SQLGym": 600,
    "WebShop": 600,
}


@pytest.mark.parametrize(
    "environment",
    [
        pytest.param(
            each, id=each.name, marks=pytest.mark.slow if each.name in QUICK else pytest.mark.exhaustive
        )
        for each in environments()
        if each.local_server
    ],
)
def test_no_cheap_policy_wins_more_than_it_may(environment, local_url):
    split = environment.splits.get("test", environment.splits.get("dev"))
    most = MOST_TASKS.get(environment.name, len(split))
    make = partial(AsyncAgentGymEnv, environment.name, server=local_url(environment.name.lower()))
    found = asyncio.run(
        validate(
            make,
            partial(load_oracle, environment),
            split[:: -(-len(split) // most)],
            unwinnable=environment.unwinnable,
            policies=True,
            cheap_wins=environment.cheap_wins,
        )
    )
    won = {name: f"{result.won} of {result.played}" for name, result in found.policies.items() if result.won}
    assert found.passed, won
    assert {*environment.cheap_wins} <= {*found.policies}
