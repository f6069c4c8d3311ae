"""A server that does not answer costs seconds, not hours."""

from __future__ import annotations

import threading
import time

import pytest

from agentgym_gym import AgentGymEnv, errors
from agentgym_gym._leasing import circuit_breaker
from agentgym_gym._leasing.circuit_breaker import CircuitBreaker


class Clock:
    """Time that passes when it is told to."""

    now = 1_000.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


LATE = errors.ServerTimeout("late")


def open_to(server: CircuitBreaker) -> bool:
    try:
        server.check()
    except errors.ServerUnreachable:
        return False
    return True


def test_the_circuit_opens_after_some_time_limits_in_a_row(clock):
    server = CircuitBreaker("http://x", clock=clock)
    for fault in [LATE, LATE, None, LATE, errors.ServerUnreachable("late", server_slow=True)]:
        server.note(fault)
        assert open_to(server)
    server.note(LATE)
    with pytest.raises(errors.ServerUnreachable, match="3 times in a row: circuit open for 10 more seconds"):
        server.check()


def test_it_is_logged_once_that_the_circuit_opens_and_once_that_it_closes(clock, caplog):
    caplog.set_level("DEBUG", "agentgym_gym")
    server = CircuitBreaker("http://me:secret@x", clock=clock)
    for fault in [LATE] * 5 + [None] * 2:
        server.note(fault)
    assert [(record.levelname, record.agentgym) for record in caplog.records] == [
        (
            "WARNING",
            {"event": "circuit open", "server": "http://***@x", "failures": 3, "seconds": 10.0},
        ),
        ("INFO", {"event": "circuit closed", "server": "http://***@x", "failures": 5}),
    ]
    assert caplog.messages[0] == "circuit open: server='http://***@x' failures=3 seconds=10.0"


def test_then_one_caller_at_a_time_tries_and_the_circuit_is_open_longer_each_time(clock):
    server = CircuitBreaker("http://x", clock=clock)
    waits = []
    for _ in range(circuit_breaker.MAX_FAILURES):
        server.note(LATE)
    for _ in range(6):
        began = clock.now
        while not open_to(server):
            clock.now += 1
        waits.append(clock.now - began)
        assert not open_to(server)  # for anyone else
        server.note(LATE)
    assert waits == [10, 20, 40, 80, 120, 120]
    server.note(None)
    assert open_to(server)
    assert open_to(server)


@pytest.mark.parametrize(
    "fault",
    [
        errors.ServerUnreachable("nobody there", refused=True),
        errors.ServerUnreachable("no such name"),
        errors.ConnectionLost("x"),
        errors.ServerError("x"),
        errors.BadReply("x"),
        errors.EnvironmentFailed("x"),
    ],
)
def test_what_fails_at_once_is_asked_again(clock, fault):
    server = CircuitBreaker("http://x", clock=clock)
    for _ in range(100):
        server.note(fault)
    assert open_to(server)


def test_a_password_is_not_told(clock):
    server = CircuitBreaker("http://me:secret@x", clock=clock)
    for _ in range(circuit_breaker.MAX_FAILURES):
        server.note(LATE)
    with pytest.raises(errors.ServerUnreachable) as caught:
        server.check()
    assert "secret" not in str(caught.value)


def test_a_dead_server_costs_three_time_limits(silent_url):
    env = AgentGymEnv("TextCraft", server=silent_url, timeout=0.2)
    for _ in range(circuit_breaker.MAX_FAILURES):
        with pytest.raises(errors.ServerTimeout):
            env.reset(seed=0)
    sent = env.stats.requests
    with pytest.raises(errors.ServerUnreachable, match="circuit open"):
        env.reset(seed=0)
    assert env.stats.requests == sent
    env.close()


@pytest.mark.slow
def test_of_several_servers_the_one_that_answers_is_used_and_the_other_tried_again(
    silent_url, textcraft_url, monkeypatch
):
    monkeypatch.setattr(circuit_breaker, "OPEN_SECONDS", 3.0)
    envs = [AgentGymEnv("TextCraft", server=[silent_url, textcraft_url], timeout=0.4) for _ in range(6)]
    for env in envs:
        env.reset(seed=0)
        assert env._episode.lease.server == textcraft_url
    # The first found out, and the others were not held up.
    assert [env.stats.faults["ServerTimeout"] for env in envs] == [1, 0, 0, 0, 0, 0]
    time.sleep(3.0)
    envs[0].reset(seed=0)  # in what it holds
    late = AgentGymEnv("TextCraft", server=[silent_url, textcraft_url], timeout=0.4)
    late.reset(seed=0)
    assert late.stats.faults["ServerTimeout"] == 1
    late.close()
    for env in envs:
        env.close()


def test_many_threads_are_not_held_up_by_a_dead_server(silent_url):
    def play():
        env = AgentGymEnv("TextCraft", server=silent_url, timeout=0.5)
        for _ in range(4):
            with pytest.raises(errors.Fault):
                env.reset(seed=0)
        env.close()

    threads = [threading.Thread(target=play) for _ in range(8)]
    began = time.monotonic()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert time.monotonic() - began < 4  # not 16 seconds
