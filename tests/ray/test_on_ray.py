"""Episodes on a local Ray cluster, with the real ray: see noxfile.py."""

from __future__ import annotations

import asyncio
import os
from functools import partial

import pytest

import needs

ray = pytest.importorskip("ray", reason=needs.reason("ray"))

import programs  # noqa: E402
from agentgym_gym import AsyncAgentGymEnv, find  # noqa: E402 - not before it is known that ray is there
from agentgym_gym.env import AgentGymEnv  # noqa: E402
from agentgym_gym.errors import BadOption, SetupError  # noqa: E402
from agentgym_gym.evaluate import evaluate, load_oracle  # noqa: E402
from agentgym_gym.evaluate._episode_workers import Job  # noqa: E402
from agentgym_gym.evaluate._on_ray import RayCluster  # noqa: E402
from agentgym_gym.evaluate._runner import play_jobs  # noqa: E402
from ray_agents import Where  # noqa: E402


@pytest.fixture(scope="module")
def cluster():
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
        patch.setenv("PYTHONPATH", programs.environment()["PYTHONPATH"])  # by which its processes import ours
        with RayCluster("local", concurrency=40, variables={"OF_THE_TEST": "here"}) as cluster:
            yield cluster


def play(cluster, make_env, make_agent, tasks, concurrency=40):
    records = []
    job = Job(make_env, make_agent, [(task, 0) for task in tasks], records.append)
    asyncio.run(play_jobs([job], concurrency=concurrency, make_worker=cluster.worker))
    return sorted(records, key=lambda record: record.task_id)


def test_it_plays_as_without_it(cluster, textcraft_url):
    oracle = partial(load_oracle, find("TextCraft"))
    records = play(cluster, partial(AsyncAgentGymEnv, "TextCraft", server=textcraft_url), oracle, range(60))
    alone = evaluate(AgentGymEnv("TextCraft", server=textcraft_url), oracle(), range(60))
    assert [(r.score, r.messages, r.ending) for r in records] == [
        (r.score, r.messages, r.ending) for r in alone
    ]


def test_it_plays_in_other_processes_which_have_the_variables(cluster, textcraft_url):
    make_env = partial(AsyncAgentGymEnv, "TextCraft", server=textcraft_url)
    records = play(cluster, make_env, Where, range(40))
    said = {record.replies[0].split()[2:][0] for record in records}
    assert len(said) == 2 > len(said & {str(os.getpid())}) == 0
    assert all(record.replies[0].endswith(" here") for record in records)


def test_a_process_that_dies_loses_no_episode(cluster, textcraft_url, tmp_path):
    make_env = partial(AsyncAgentGymEnv, "TextCraft", server=textcraft_url)
    records = play(cluster, make_env, partial(Where, tmp_path), range(20), concurrency=6)
    assert [record.task_id for record in records] == list(range(20))
    assert all(record.scored for record in records)


class NotThere(Where):
    """An agent in a module that the processes cannot import."""


def test_what_the_machines_cannot_import_is_told(cluster, textcraft_url):
    make_env = partial(AsyncAgentGymEnv, "TextCraft", server=textcraft_url)
    with pytest.raises(SetupError, match=r"cannot use the Ray cluster.*No module named"):
        play(cluster, make_env, NotThere, [1])


def test_a_mistake_in_the_set_up_is_told_as_without_it(cluster, textcraft_url):
    make_env = partial(AsyncAgentGymEnv, "TextCraft", server=textcraft_url)
    with pytest.raises(BadOption, match="no task 999"):
        play(cluster, make_env, Where, [999])


@pytest.mark.parametrize("address", ["127.0.0.1:9", "ray://127.0.0.1:9"])
def test_where_there_is_no_cluster(address):
    with pytest.raises(SetupError, match="there is no Ray cluster at"):
        RayCluster(address)
