"""gymnasium's own checker over every id, each server being played by one that answers out of a recording."""

from __future__ import annotations

import gymnasium
import pytest
from gymnasium.utils.env_checker import check_env

import agentgym_gym

IDS = [
    (environment, each)
    for environment in agentgym_gym.environments()
    if environment.of_agentgym
    for each in environment.ids
]


@pytest.mark.parametrize(
    ("environment", "env_id", "render_mode"),
    [
        (*IDS[0], None),
        (*IDS[0], "ansi"),
        *(pytest.param(*each, "ansi", marks=pytest.mark.slow) for each in IDS[1:]),
    ],
    ids=lambda value: str(getattr(value, "name", value)),
)
def test_check_env(environment, env_id, render_mode, replay):
    env = gymnasium.make(
        env_id, server=replay(environment), render_mode=render_mode, disable_env_checker=True
    )
    check_env(env.unwrapped)
    env.close()


@pytest.mark.parametrize(
    ("environment", "env_id"),
    [pytest.param(*each, marks=pytest.mark.slow if number % 3 else ()) for number, each in enumerate(IDS)],
    ids=lambda value: str(getattr(value, "name", value)),
)
def test_an_episode_is_played(environment, env_id, replay):
    """From gymnasium.make to the last turn, by the wrapper that checks each step."""
    env = gymnasium.make(env_id, server=replay(environment))
    env.reset(seed=0)
    rewards, ended = 0.0, False
    for _ in range(environment.max_turns):
        _, reward, terminated, truncated, info = env.step(env.action_space.sample())
        assert "fault" not in info, info
        rewards += reward
        ended = terminated or truncated
        if ended:
            break
    assert ended
    low, high = environment.score_range
    assert rewards == pytest.approx(info["score"])
    assert low <= info["score"] <= high
    env.close()
