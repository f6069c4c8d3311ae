"""The thoughts of oracles: before each action, short, and kept by every action format."""

from __future__ import annotations

import pytest

import agentgym_gym
from agentgym_gym import AgentGymEnv
from agentgym_gym.evaluate import load_oracle
from agentgym_gym.formats import FORMATS, Bare, get_format

PLAYED = [environment for environment in agentgym_gym.environments() if environment.oracle]
SAMPLE = 2  # tasks per split
MOST_WORDS = 70  # of one thought; the mean is a quarter of this


def tasks_of(environment):
    """Return the first tasks of each split that is not all of them."""
    splits = {split: tasks for split, tasks in environment.splits.items() if split != "all"}
    firsts = [task for tasks in splits.values() for task in tasks[:SAMPLE]]
    return sorted(set(firsts)) or list(environment.splits["all"][:SAMPLE])


@pytest.fixture(scope="module", params=PLAYED, ids=lambda environment: environment.name)
def games(request, local_url):
    """The environment, and the replies of its oracles in the first tasks of each split."""
    environment, replies = request.param, []
    with AgentGymEnv(environment.name, server=local_url(environment.name.lower())) as env:
        for task in tasks_of(environment):
            silent, thinking = (load_oracle(environment, thoughts=thoughts) for thoughts in (False, True))
            observation, info = env.reset(options={"task_id": task})
            for oracle in (silent, thinking):
                oracle.reset(env, observation, info)
            over = False
            while not over:
                reply = thinking.act(observation, info)
                assert reply.action == silent.act(observation, info)
                replies.append(reply)
                observation, _, terminated, truncated, info = env.step(reply.action)
                over = terminated or truncated
            assert info["success"], (environment.name, task)
    return environment, replies


def test_each_action_has_a_short_thought(games):
    environment, replies = games
    for reply in replies:
        assert 0 < len(reply.thought.split()) <= MOST_WORDS, (environment.name, reply)
        assert "\n" not in reply.thought


def test_every_format_keeps_the_thought_and_the_action(games):
    environment, replies = games
    for action_format in map(get_format, [*FORMATS, "tool_calls"]):
        for reply in replies:
            text = action_format.render(reply.action, reply.thought)
            assert action_format.parse(text, environment.grammar) == reply.action
            if not isinstance(action_format, Bare):
                assert action_format.thought_of(text, reply.action) == reply.thought
