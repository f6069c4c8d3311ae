"""The sound environments are sound, and each seeded defect shows in its environment only."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import pytest
from gymnasium.utils.env_checker import check_env

from seeded_defects import ALL, SOUND
from seeded_defects.probes import PROBES, begin, make

pytestmark = pytest.mark.slow  # they play for half a minute a file

PLAN = Path(__file__).parents[2] / "docs" / "plans" / "49.md"
LOCAL = [name for name in SOUND if name not in {"AwaitedNumberGame", "TextCraft"}]


def played(env, agent, task):
    observation, info = begin(env, task)
    trace, over = [(observation, info)], False
    agent.reset(env, observation, info)
    while not over:
        observation, reward, terminated, truncated, info = env.step(agent.act(observation, info))
        trace.append((observation, reward, terminated, truncated, info))
        over = terminated or truncated
    return trace


@pytest.mark.parametrize("name", [name for name in SOUND if name != "AwaitedNumberGame"])
def test_solutions_win_and_repeat(name):
    envs = make(SOUND[name].env_id), make(SOUND[name].env_id)
    for task in range(50):
        one, two = (played(env, SOUND[name].solver(), task) for env in envs)
        assert one == two
        assert one[-1][2] is True
        assert one[-1][4]["success"] is True
        assert sum(turn[1] for turn in one[1:]) == pytest.approx(1)
        assert not any(turn[4]["success"] for turn in one[1:-1])
    for env in envs:
        env.close()
        env.close()


def test_the_awaited_game_is_won():
    async def win():
        env = make(SOUND["AwaitedNumberGame"].env_id)
        observation, info = await env.reset(seed=7)
        agent = SOUND["AwaitedNumberGame"].solver()
        agent.reset(env, observation, info)
        terminated = False
        while not terminated:
            observation, reward, terminated, _, info = await env.step(agent.act(observation, info))
        return reward, info["success"]

    assert asyncio.run(win()) == (1.0, True)


@pytest.mark.parametrize("name", LOCAL)
def test_every_task_is_won_and_begins_differently(name):
    env, goals, starts = make(SOUND[name].env_id), set(), set()
    for task in range(500):
        trace = played(env, SOUND[name].solver(), task)
        assert trace[-1][4]["success"]
        goals.add(trace[0][1]["goal"])
        starts.add(trace[0][0])
    assert len(goals) == len(starts) == 500


@pytest.mark.filterwarnings("ignore::UserWarning")  # of a space that gymnasium does not know
@pytest.mark.parametrize("name", LOCAL)
def test_gymnasium_accepts_it(name):
    check_env(make(SOUND[name].env_id).unwrapped, skip_render_check=True)


@pytest.mark.parametrize("name", LOCAL)
@pytest.mark.parametrize("text", ["", "\ud800", "😀" * 50, "a" * 100_000, "guess", "[", "\x00\n\r", "{}"])
def test_any_text_gets_an_answer(name, text):
    env = make(SOUND[name].env_id)
    begin(env, 1)
    observation, reward, terminated, truncated, info = env.step(text)
    assert (reward, terminated, truncated, info["success"]) == (0.0, False, False, False)
    assert observation in env.observation_space


def test_forty_have_names_of_their_own():
    assert len({defect.env_id for defect in ALL}) == len(ALL) == 40
    assert sum(defect.before for defect in ALL) == 20
    assert set(PROBES) == {defect.name for defect in ALL}


def test_properties_are_in_the_plan():
    names = set(re.findall(r"^\| `([a-z-]+)` \| (?:error|warning) ", PLAN.read_text("utf-8"), re.MULTILINE))
    assert len(names) > 25
    assert all(defect.properties and defect.properties <= names for defect in ALL)


@pytest.mark.parametrize("defect", ALL, ids=lambda defect: defect.name)
def test_a_defect_shows_in_its_environment_only(defect):
    assert not PROBES[defect.name](defect.sound_id)
    assert PROBES[defect.name](defect.env_id)
