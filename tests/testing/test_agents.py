"""Scripted agents, in an evaluation and by hand."""

from __future__ import annotations

import contextlib

import pytest

from agentgym_gym import AgentGymEnv
from agentgym_gym.envs.textcraft import Inventory
from agentgym_gym.evaluate import evaluate
from agentgym_gym.testing import FunctionAgent, ScriptedAgent


@pytest.fixture
def env(textcraft_url):
    with contextlib.closing(AgentGymEnv("TextCraft", server=textcraft_url)) as env:
        yield env


def test_a_scripted_agent_repeats_its_replies_in_every_episode_and_gives_up(env):
    agent = ScriptedAgent("Action: inventory", Inventory(), name="two")
    records = evaluate(env, agent, [0, 1])
    typed = env.action_space.action_format.render(Inventory())
    assert [record.replies for record in records] == [("Action: inventory", typed)] * 2
    assert [record.agent for record in records] == ["two", "two"]


def test_a_function_sees_the_last_observation(env):
    seen = []

    def reply(observation):
        seen.append(observation)
        return "Action: inventory" if len(seen) < 3 else None

    [record] = evaluate(env, FunctionAgent(reply), [3])
    assert seen == [message["content"] for message in record.messages if message["role"] == "user"]
    assert (record.agent, record.turns) == ("function", 2)


def test_by_hand(env):
    agent = ScriptedAgent("Action: inventory")
    assert agent.act("", {}) == "Action: inventory"  # also before any episode
    observation, info = env.reset(options={"task_id": 0})
    agent.reset(env, observation, info)
    observation, *_, info = env.step(agent.act(observation, info))
    assert "Inventory" in observation
    assert agent.act(observation, info) is None
