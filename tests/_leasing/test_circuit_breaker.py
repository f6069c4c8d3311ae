"""The state of a circuit by a clock: what opens it, and for how long."""

from __future__ import annotations

import pytest

from agentgym_gym import errors
from agentgym_gym._leasing import circuit_breaker
from agentgym_gym._leasing.circuit_breaker import CircuitBreaker
from clock import Clock


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
    with pytest.raises(errors.ServerUnreachable, match="circuit open for 10 more"):
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
    for _ in range(circuit_breaker.MAX_FAILURES):
        server.note(LATE)
    clock.now += 10  # no longer than at first
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
def test_immediate_failures_do_not_open_the_circuit(clock, fault):
    server = CircuitBreaker("http://x", clock=clock)
    for _ in range(100):
        server.note(fault)
    assert open_to(server)


def test_no_error_contains_a_password(clock):
    server = CircuitBreaker("http://me:secret@x", clock=clock)
    for _ in range(circuit_breaker.MAX_FAILURES):
        server.note(LATE)
    with pytest.raises(errors.ServerUnreachable) as caught:
        server.check()
    assert "secret" not in str(caught.value)
