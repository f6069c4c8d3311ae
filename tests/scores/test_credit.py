"""Credit and log of a training, worked out by hand: what no door without verl leads to."""

from __future__ import annotations

import asyncio
import math

import pytest

from agentgym_gym.rollout import Episode, Pool
from counting_env import Count
from verl_bridge._credit.gigpo import advantages
from verl_bridge._run.episode_log import record_of
from verl_bridge.horizon import Horizon, Moment

DEVIATION = 1 / math.sqrt(3)  # of 1, 0, 0, as of a sample


@pytest.mark.parametrize(
    ("scores", "groups", "by_std", "expected"),
    [
        ([1, 0, 0], "aaa", False, [2 / 3, -1 / 3, -1 / 3]),
        ([1, 0, 0], "aaa", True, [2 / 3 / DEVIATION, -1 / 3 / DEVIATION, -1 / 3 / DEVIATION]),
        ([1, 0, 1, 0], "aabb", False, [0.5, -0.5, 0.5, -0.5]),
        ([1, 0, 1, 1], "abab", False, [0.0, -0.5, 0.0, 0.5]),
        ([1, 1], "aa", True, [0.0, 0.0]),
        ([0.5], "a", True, [0.5]),  # the only episode of a group has its score
        ([1, 0, 0.5], "aab", False, [0.5, -0.5, 0.5]),
    ],
)
def test_an_episode_is_compared_with_its_group(scores, groups, by_std, expected):
    turns = [[score] for score in scores]
    states = [[number] for number in range(len(scores))]
    found, by_turn = advantages(scores, groups, turns, states, gamma=1.0, by_std=by_std)
    assert [pytest.approx([value], abs=1e-5) for value in expected] == found
    assert by_turn == [[0.0]] * len(scores)  # no state is met twice


@pytest.mark.parametrize(
    ("rewards", "states", "groups", "gamma", "expected"),
    [
        ([[0, 1], [0, 0]], ["st", "st"], "aa", 1.0, [[0.5, 0.5], [-0.5, -0.5]]),
        ([[0, 1], [0, 0]], ["st", "st"], "aa", 0.5, [[0.25, 0.5], [-0.25, -0.5]]),
        ([[0, 1], [0, 0]], ["st", "su"], "aa", 0.5, [[0.25, 0.0], [-0.25, 0.0]]),
        ([[0, 1], [0, 0]], ["st", "st"], "ab", 1.0, [[0.0, 0.0], [0.0, 0.0]]),  # of two tasks
        ([[0, 1], [1]], ["ss", "t"], "aa", 0.5, [[-0.25, 0.25], [0.0]]),  # a state twice in one episode
        ([[0, 1], [1]], ["st", "t"], "aa", 0.0, [[0.0, 0.0], [0.0]]),
        ([[0, 0, 4], [0]], ["stu", "s"], "aa", 0.5, [[0.5, 0.0, 0.0], [-0.5]]),
    ],
)
def test_a_turn_is_compared_with_others_of_its_state(rewards, states, groups, gamma, expected):
    scores = [sum(own) for own in rewards]
    _, found = advantages(scores, groups, rewards, states, gamma=gamma, by_std=False)
    assert [pytest.approx(own) for own in expected] == found


@pytest.mark.parametrize(
    ("fault", "cut", "replies", "score", "ending"),
    [
        (None, False, 3, 3.0, "terminated"),
        (None, True, 3, 3.0, "terminated"),
        (None, True, 2, 2.0, "context_overflow"),
        (None, False, 2, 2.0, "aborted"),
        ("Aborted", False, 2, None, "fault"),
        ("Aborted", False, 3, None, "fault"),  # a fault outside of the environment, after the last turn
        ("Aborted", True, 0, None, "fault"),
    ],
)
def test_an_excluded_episode_is_logged_without_a_score(fault, cut, replies, score, ending):
    async def logged():
        async with Pool(Count) as pool, Episode(pool, task=0) as episode:
            for number in range(replies):
                await episode.step(str(number + 1))
            told = {"kind": fault, "message": "no"} if fault else None
            moment = Moment(7, validation=False)
            return record_of(
                episode, agent="m", task_id=4, fault=told, cut=cut, agent_seconds=1.0, moment=moment
            )

    record = asyncio.run(logged())
    assert (record.score, record.ending, record.scored) == (score, ending, fault is None)
    assert (record.return_, record.turns, record.task_id, record.step) == (float(replies), replies, 4, 7)
    assert record.success is (None if fault or not replies else replies == 3)
    assert record.truncated is (fault is not None)


@pytest.mark.parametrize(
    ("step", "turns"), [(0, 5), (1, 5), (2, 5), (3, 10), (4, 10), (5, 15), (6, 15), (7, 15), (100, 15)]
)
def test_the_turn_limit_grows_after_the_last_step_of_a_stage(step, turns):
    horizon = Horizon((5, 10, 15), every=2)
    assert horizon.limit(Moment(step, validation=False)) == horizon.at(step) == turns
    assert horizon.limit(Moment(step, validation=True)) == 15
    assert Horizon((5, 10, 15), every=2, validation=True).limit(Moment(step, validation=True)) == turns
