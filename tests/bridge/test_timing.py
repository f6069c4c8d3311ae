"""Seconds of an environment's calls, and episodes and faults by server: over real servers, without verl."""

from __future__ import annotations

import asyncio
import time

import pytest

from agentgym_gym.rollout import close_all
from inside import pool_at
from task_play import begin
from verl_bridge._log_labels import labels_of
from verl_bridge._metrics import by_environment
from verl_bridge._timing import LABEL, Calls, Timing, server_warnings
from verl_bridge.tasks import EnvTask

CRAFT = "agentgym/TextCraft-v0"
AT = f"env/{CRAFT}"
SLOW_SECONDS = 0.2


@pytest.fixture(autouse=True)
def _closed():
    close_all()
    yield
    close_all()


def task_at(*urls):
    return EnvTask(f"agentgym_gym:{CRAFT}", {"server": list(urls), "timeout": 20}, {"task_id": 0})


async def record_of(task, turns):
    """Play some turns; return the record."""
    episode = await begin(task)
    for _ in range(turns):
        if not episode.over:
            await episode.step("Action: inventory")
    await episode.end()
    timing = Timing()
    timing.note(episode)
    return {
        "env_id": CRAFT,
        "fault": float(episode.fault is not None),
        **labels_of(task, episode.fault, timing),
    }


def name_of(server):
    return server.url.removeprefix("http://")


def test_the_seconds_of_steps_and_resets(counted, monkeypatch):
    server = counted()
    answer = server._textcraft

    def slowly(path, body):
        time.sleep({"/step": SLOW_SECONDS, "/reset": 2 * SLOW_SECONDS}.get(path, 0))
        return answer(path, body)

    monkeypatch.setattr(server, "_textcraft", slowly)
    url = server.url.replace("http://", "http://me:secret@")
    began = time.monotonic()
    records = [asyncio.run(record_of(task_at(url), turns)) for turns in (1, 3)]
    most = time.monotonic() - began
    metrics = by_environment(records)
    step, reset = metrics[f"{AT}/step_seconds"], metrics[f"{AT}/reset_seconds"]
    assert step >= SLOW_SECONDS
    assert reset >= 2 * SLOW_SECONDS
    assert 4 * step + 2 * reset <= most  # so they are means
    at = f"{AT}/server/{name_of(server)}"
    assert {name: metrics[f"{at}/{name}"] for name in ("episodes", "faults", "step_seconds")} == {
        "episodes": 2,
        "faults": 0,
        "step_seconds": metrics[f"{AT}/step_seconds"],
    }
    assert not any("secret" in text for text in (*metrics, *(each[LABEL] for each in records)))


def test_a_fault_is_counted_for_its_server_and_not_in_its_seconds(counted):
    good, bad = counted(), counted()
    bad.broken.add("/step")
    records = [asyncio.run(record_of(task_at(server.url), 2)) for server in (good, bad)]
    metrics = by_environment(records)
    assert metrics[f"{AT}/faults"] == 1
    assert metrics[f"{AT}/server/{name_of(bad)}/faults"] == 1
    assert metrics[f"{AT}/server/{name_of(bad)}/episodes"] == 1
    assert f"{AT}/server/{name_of(bad)}/step_seconds" not in metrics
    assert metrics[f"{AT}/server/{name_of(good)}/faults"] == 0
    assert server_warnings(records) == []


def test_a_server_that_is_gone_is_named_though_another_played_its_episodes(counted):
    gone, other = counted(), counted()
    gone.stop()
    records = [asyncio.run(record_of(task_at(gone.url, other.url), 1)) for _ in range(2)]
    assert [record["fault"] for record in records] == [0, 0]
    metrics = by_environment(records)
    assert metrics[f"{AT}/server/{name_of(gone)}/episodes"] == 0
    assert metrics[f"{AT}/server/{name_of(gone)}/faults"] >= 1
    assert metrics[f"{AT}/server/{name_of(other)}/episodes"] == 2
    (warning,) = server_warnings(records)
    assert warning.startswith(f"{CRAFT}: the server {name_of(gone)} answers no more: ")
    assert pool_at("TextCraft", gone.url).breaker.deprioritized


def test_earlier_tries_of_an_episode_count_too(counted):
    """Their fault is of the server that had it, though the episode was played at last."""
    good, bad = counted(), counted()
    bad.broken.add("/step")
    tries = [asyncio.run(record_of(task_at(server.url), 2)) for server in (bad, good)]
    timing = Timing()
    for each in tries:
        timing.add(Timing.of(each[LABEL]))
    assert Timing.of(timing.label()) == timing
    metrics = by_environment([{"env_id": CRAFT, "fault": 0.0, LABEL: timing.label()}])
    assert metrics[f"{AT}/faults"] == 0
    assert metrics[f"{AT}/server/{name_of(bad)}/faults"] == 1


def step_of(**seconds):
    """Return the records of a training step with an episode of ten steps on each server."""
    calls = {name: Calls(episodes=1, steps=10, step_seconds=10 * each) for name, each in seconds.items()}
    return [{"env_id": CRAFT, LABEL: Timing(servers={name: each}).label()} for name, each in calls.items()]


@pytest.mark.parametrize(
    ("seconds", "slow"),
    [
        ({"a": 0.1, "b": 0.11, "c": 0.1, "d": 0.9}, ["d"]),
        ({"a": 0.1, "b": 0.31}, ["b"]),
        ({"a": 0.1, "b": 0.29, "c": 0.1}, []),
        ({"a": 0.1, "b": 0.5, "c": 0.5}, []),  # it is no slow server that is the only quick one
        ({"a": 0.001, "b": 0.009}, []),  # both are quick
        ({"a": 0.9}, []),
    ],
)
def test_a_server_more_than_three_times_as_slow_as_the_others_is_named(seconds, slow):
    warnings = server_warnings(step_of(**seconds))
    assert [line.split(" is slow")[0] for line in warnings] == [
        f"{CRAFT}: the server {name}" for name in slow
    ]


def test_records_of_other_loops_have_no_timing():
    assert server_warnings([{"score": 1.0}, {"env_id": CRAFT}]) == []
    assert f"{AT}/step_seconds" not in by_environment([{"env_id": CRAFT, "fault": 0.0}])
