"""What was counted, and what is logged of it, for all three kinds of environment."""

from __future__ import annotations

import logging

import pytest

import inside
from agentgym_gym import AgentGymEnv, Stats, errors
from bad_textcraft import LOOK, POISON, Alone, Awaited, Server
from fake_server import http


@pytest.fixture
def logged(caplog):
    """Returns what was logged of an event: the names of the logger and the level, and the facts."""
    caplog.set_level(logging.DEBUG, "agentgym_gym")

    def of(event):
        return [
            (record.name, record.levelname, facts)
            for record in caplog.records
            if (facts := dict(record.agentgym)).pop("event") == event
        ]

    return of


def test_a_reconnect(play, server, logged):
    play.reset()
    before = play.env.stats.connections
    assert play.env.stats.reconnects == 0
    server.bad[POISON] = http(b"", "500 Internal Server Error")
    play.step(f"Action: {POISON}")
    play.reset()
    assert play.env.stats.reconnects == 1
    assert play.env.stats.connections == before + 1
    [(name, level, facts)] = logged("reconnect")
    assert (name, level, facts["stage"]) == ("agentgym_gym", "DEBUG", "close")  # the first request after it


def test_a_retry(play, server, logged):
    def unavailable_once(connection):
        del server.bad[POISON]
        connection.send(http(b"", "503 Service Unavailable"))

    play.reset()
    server.bad[POISON] = unavailable_once
    assert "fault" not in play.step(f"Action: {POISON}")[4]
    assert play.env.stats.retries == 1
    [(name, level, facts)] = logged("retry")
    message = f"POST {server.url}/step answered HTTP 503"
    assert (name, level) == ("agentgym_gym", "INFO")
    assert facts == {"stage": "step", "server": server.url, "attempt": 2, "wait": 0.0, "message": message}


@pytest.mark.parametrize("answer", [http(b"<html>"), http(b"", "500 Oops")], ids=["HTML", "500"])
def test_a_fault_is_logged_once(play, server, logged, answer):
    server.bad[POISON] = answer
    play.reset()
    told = play.step(f"Action: {POISON}")[4]["fault"]
    assert logged("fault") == [("agentgym_gym", "INFO", {**told, "stage": "step", "server": server.url})]


def test_a_lease_is_logged_as_it_comes_and_goes(play, server, logged):
    play.reset()
    env_id = max(facts["env_id"] for _, _, facts in logged("lease made"))
    assert ("agentgym_gym", "DEBUG", {"server": server.url, "env_id": env_id, "fresh": True}) in logged(
        "lease made"
    )
    assert logged("lease lost") == []
    play.close()
    released = {"server": server.url, "env_id": env_id, "current": True}
    assert ("agentgym_gym", "DEBUG", released) in logged("lease released")


def test_a_lease_that_is_lost_is_logged(play, server, logged, monkeypatch):
    inside.retry_at_once(monkeypatch)
    play.reset()
    server.stop()
    for _ in range(2):
        with pytest.raises(errors.ServerUnreachable):
            play.reset()
    made = range(100, next(server.ids))
    lost = [("agentgym_gym", "DEBUG", {"server": server.url, "env_id": env_id}) for env_id in made]
    assert sorted(logged("lease lost"), key=str) == lost  # a vector may make them in any order


def test_a_turn_that_goes_well_is_not_logged(play, caplog):
    play.reset()
    caplog.clear()
    caplog.set_level(logging.DEBUG, "agentgym_gym")
    play.step(LOOK)
    assert [record for record in caplog.records if record.name.startswith("agentgym_gym")] == []


def test_no_password_is_logged(server, caplog):
    caplog.set_level(logging.DEBUG, "agentgym_gym")
    env = AgentGymEnv("TextCraft", server=server.url.replace("http://", "http://me:secret@"))
    env.reset(options={"task_id": 1})
    for answer in (http(b"", "503 Service Unavailable"), http(b"", "500 Oops")):
        server.bad[POISON] = answer
        env.step(f"Action: {POISON}")
        env.reset(options={"task_id": 1})
    env.close()
    assert {record.agentgym["event"] for record in caplog.records} >= {"retry", "fault", "lease made"}
    assert not any("secret" in record.getMessage() + str(vars(record)) for record in caplog.records)


@pytest.mark.parametrize("kind", [Alone, Awaited])
def test_a_failed_connection_does_not_count(kind, monkeypatch):
    inside.retry_at_once(monkeypatch)
    with Server() as gone:
        play = kind(gone.url)
    with pytest.raises(errors.ServerUnreachable):
        play.reset()
    stats = play.env.stats
    assert (stats.requests, stats.retries, stats.connections) == (3, 2, 0)
    assert stats.faults == {"ServerUnreachable": 1}
    play.close()


def test_counts_can_be_added_subtracted_and_read_back(play):
    play.reset()
    before = (
        play.env.stats.copy() if isinstance(play.env, AgentGymEnv) else Stats.of(play.env.stats.as_dict())
    )
    play.step(LOOK)
    more = play.env.stats.since(before)
    assert more.requests >= 1
    assert (more.connections, more.faults) == (0, {})
    before.add(more)
    assert before == play.env.stats
    assert Stats.of({**before.as_dict(), "mood": "good"}) == before
