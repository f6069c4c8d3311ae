"""Seconds of an environment's calls, and episodes and faults by server: over real servers, without verl."""

from __future__ import annotations

import asyncio
import json
import logging
import time

import pytest

import inside_bridge
from agentgym_gym.rollout import close_all
from inside import pool_at
from loop_without_verl import agent_loop, play, record_of, row_of
from verl_functions import metrics_of

CRAFT = "agentgym/TextCraft-v0"
AT = f"env/{CRAFT}"
SLOW_SECONDS = 0.05


@pytest.fixture(autouse=True)
def _closed():
    close_all()
    yield
    close_all()


@pytest.fixture
def metrics(monkeypatch):
    """Returns the metrics of a training step with some records."""
    return lambda records: metrics_of(monkeypatch, records)


@pytest.fixture
def warnings_of(metrics, caplog):
    """Returns the warnings about servers in a training step with some records."""

    def warned(records):
        caplog.clear()
        with caplog.at_level(logging.WARNING):
            metrics(records)
        return [line for line in caplog.messages if ": the server " in line]

    return warned


def played_at(*urls, turns=1, **arguments):
    """Play some turns; return the record."""
    row = row_of(f"agentgym_gym:{CRAFT}", {"server": list(urls), "timeout": 20}, {"task_id": 0})
    return record_of(asyncio.run(play(row, "Action: inventory", max_turns=turns, **arguments)))


def name_of(server):
    return server.url.removeprefix("http://")


def test_the_seconds_of_steps_and_resets(counted, monkeypatch, metrics):
    server = counted()
    answer = server._textcraft

    def slowly(path, body):
        time.sleep({"/step": SLOW_SECONDS, "/reset": 2 * SLOW_SECONDS}.get(path, 0))
        return answer(path, body)

    monkeypatch.setattr(server, "_textcraft", slowly)
    url = server.url.replace("http://", "http://me:secret@")
    began = time.monotonic()
    records = [played_at(url, turns=turns) for turns in (1, 3)]
    most = time.monotonic() - began
    found = metrics(records)
    step, reset = found[f"{AT}/step_seconds"], found[f"{AT}/reset_seconds"]
    assert step >= SLOW_SECONDS
    assert reset >= 2 * SLOW_SECONDS
    assert 4 * step + 2 * reset <= most  # so they are means
    at = f"{AT}/server/{name_of(server)}"
    assert {name: found[f"{at}/{name}"] for name in ("episodes", "faults", "step_seconds")} == {
        "episodes": 2,
        "faults": 0,
        "step_seconds": step,
    }
    assert "secret" not in str([found, records])


def test_a_fault_is_counted_for_its_server_and_not_in_its_seconds(counted, metrics, warnings_of):
    good, bad = counted(), counted()
    bad.broken.add("/step")
    records = [played_at(server.url, turns=2) for server in (good, bad)]
    found = metrics(records)
    assert found[f"{AT}/faults"] == 1
    assert found[f"{AT}/server/{name_of(bad)}/faults"] == 1
    assert found[f"{AT}/server/{name_of(bad)}/episodes"] == 1
    assert f"{AT}/server/{name_of(bad)}/step_seconds" not in found
    assert found[f"{AT}/server/{name_of(good)}/faults"] == 0
    assert warnings_of(records) == []


def test_a_server_that_is_gone_is_named_though_another_played_its_episodes(counted, metrics, warnings_of):
    gone, other = counted(), counted()
    gone.stop()
    records = [played_at(gone.url, other.url) for _ in range(2)]
    assert [record["fault"] for record in records] == [0, 0]
    found = metrics(records)
    assert found[f"{AT}/server/{name_of(gone)}/episodes"] == 0
    assert found[f"{AT}/server/{name_of(gone)}/faults"] >= 1
    assert found[f"{AT}/server/{name_of(other)}/episodes"] == 2
    (warning,) = warnings_of(records)
    assert warning.startswith(f"{CRAFT}: the server {name_of(gone)} answers no more: ")
    assert pool_at("TextCraft", gone.url).breaker.deprioritized


def test_earlier_tries_of_an_episode_count_too(counted, metrics, monkeypatch):
    """Their fault is of the server that had it, though the episode was played at last."""
    inside_bridge.retry_episodes_after(monkeypatch, 0.02, 0.02)
    server, tries = counted(), []
    server.broken.add("/step")

    def reply(messages):
        if tries:
            server.broken.clear()
        tries.append(messages)
        return "Action: inventory"

    row = row_of(f"agentgym_gym:{CRAFT}", {"server": server.url}, {"task_id": 0})
    output = asyncio.run(agent_loop(reply, max_turns=1).run({}, **row))
    found = metrics([record_of(output)])
    assert (found[f"{AT}/faults"], found[f"{AT}/replays"]) == (0, 1)
    assert found[f"{AT}/server/{name_of(server)}/faults"] >= 1
    assert found[f"{AT}/server/{name_of(server)}/episodes"] == 2


def step_of(**seconds):
    """Return the records of a training step with an episode of ten steps on each server."""
    none = {"episodes": 0, "faults": 0, "reset_seconds": 0, "steps": 0, "step_seconds": 0}
    calls = {
        name: none | {"episodes": 1, "steps": 10, "step_seconds": 10 * each} for name, each in seconds.items()
    }
    return [
        {"env_id": CRAFT, "env_timing": json.dumps({"total": none, "servers": {name: each}})}
        for name, each in calls.items()
    ]


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
def test_a_server_more_than_three_times_as_slow_as_the_others_is_named(warnings_of, seconds, slow):
    lines = warnings_of(step_of(**seconds))
    assert [line.split(" is slow")[0] for line in lines] == [f"{CRAFT}: the server {name}" for name in slow]


def test_records_of_other_loops_have_no_timing(metrics, warnings_of):
    assert warnings_of([{"score": 1.0}, {"env_id": CRAFT}]) == []
    assert f"{AT}/step_seconds" not in metrics([{"env_id": CRAFT, "fault": 0.0}])
