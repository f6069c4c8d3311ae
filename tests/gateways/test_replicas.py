"""The nginx of docs/cluster.md: one address for several replicas, in which the path names the replica."""

from __future__ import annotations

import asyncio

import pytest

from agentgym_gym import AgentGymEnv, AsyncAgentGymEnv
from agentgym_gym.errors import ServerError

pytestmark = pytest.mark.slow  # it starts an nginx and a server


def test_an_environment_stays_on_its_replica(replicas):
    urls, _ = replicas

    async def play(task):
        async with AsyncAgentGymEnv("TextCraft", server=urls) as env:
            await env.reset(options={"task_id": task})
            return [(await env.step("Action: inventory"))[0] for _ in range(5)]

    async def play_all():
        return await asyncio.gather(*map(play, range(20)))

    for observations in asyncio.run(play_all()):
        assert all(observation.startswith("Inventory:") for observation in observations)


def test_each_path_is_a_separate_server(replicas):
    urls, second = replicas
    second.stop()
    with AgentGymEnv("TextCraft", server=urls[0]) as env:
        assert env.reset(options={"task_id": 0})[0].startswith("Crafting commands:")
    with AgentGymEnv("TextCraft", server=urls[1]) as env, pytest.raises(ServerError, match="502"):
        env.reset(options={"task_id": 0})
