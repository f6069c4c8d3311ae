"""What is done at exit, and in which order; what belongs to which process."""

from __future__ import annotations

import os

import pytest

from agentgym_gym import _lifecycle
from agentgym_gym._lifecycle import ProcessId, at_exit, run_at_exit


def failing(error):
    def fail():
        raise error

    return fail


def test_order_is_by_number_then_by_registration(monkeypatch):
    monkeypatch.setattr(_lifecycle, "_functions", [])
    called = []
    for order, name in [(30, "stop"), (10, "first"), (20, "remove"), (10, "second")]:
        at_exit(lambda name=name: called.append(name), order=order)
    run_at_exit()
    assert called == ["first", "second", "remove", "stop"]


@pytest.mark.parametrize("error", [OSError("on purpose"), KeyboardInterrupt()])
def test_an_exception_keeps_no_other_from_running(monkeypatch, error):
    monkeypatch.setattr(_lifecycle, "_functions", [])
    called = []
    at_exit(failing(error), order=10)
    at_exit(lambda: called.append("stop"), order=30)
    with pytest.raises(type(error)):
        run_at_exit()
    assert called == ["stop"]


def test_environments_are_released_before_records_go_and_servers_stop():
    assert _lifecycle.RELEASE_ENVIRONMENTS < _lifecycle.REMOVE_RECORDS < _lifecycle.STOP_SERVERS
    registered = [order for order, _ in _lifecycle._functions]
    assert registered == sorted(registered)
    assert {_lifecycle.RELEASE_ENVIRONMENTS, _lifecycle.STOP_SERVERS} <= set(registered)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system cannot fork")
def test_an_object_belongs_to_the_process_that_made_it():
    process = ProcessId()
    assert process.current
    child = os.fork()
    if not child:
        os._exit(int(process.current))
    assert os.waitpid(child, 0)[1] == 0
