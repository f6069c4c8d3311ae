"""After a fault at any I/O point nothing is left open, nobody else notices, and the next score is right.

``make interrupts`` runs all points, ``make test`` a sample of them.
"""

from __future__ import annotations

import contextlib
import gc
from itertools import islice

import pytest

from fault_injection import (
    SCRIPTS,
    AwaitedClient,
    EpisodeClient,
    SyncClient,
    Trial,
    VectorClient,
    cancel_points,
    fault_points,
    signal_points,
)

CLIENTS = {
    "sync": SyncClient,
    "awaited": AwaitedClient,
    "vector": VectorClient,
    "episode": EpisodeClient,
}
FEW, MANY = 8, None

# An interrupt may leave a socket, a coroutine or an exception to the garbage collector, which reports it.
pytestmark = [
    pytest.mark.filterwarnings(
        "ignore::pytest.PytestUnraisableExceptionWarning", "ignore:coroutine .* was never awaited"
    ),
    pytest.mark.usefixtures("garbage_collected_at_the_end"),
]


@pytest.fixture(scope="module")
def garbage_collected_at_the_end():
    """Collects the garbage of all these tests, so that no other test has it reported."""
    yield
    for _ in range(5):  # what finalizers hold is garbage when they have run
        gc.collect()


@contextlib.contextmanager
def trial_of(script, client):
    trial = Trial(script, CLIENTS[client])
    try:
        yield trial
    finally:
        trial.stop()


def findings(points, least=1):
    """Return the points after which something is wrong."""
    wrong, count = {}, 0
    for point, found in points:
        count += 1
        if found:
            wrong[point] = found
    assert count >= least
    return wrong


number = pytest.mark.parametrize(
    "number",
    [
        pytest.param(FEW, id="sample"),
        pytest.param(MANY, id="all", marks=pytest.mark.exhaustive),
    ],
)
scripts = pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.name)


@pytest.mark.slow
@number
@scripts
@pytest.mark.parametrize("client", CLIENTS)
def test_ctrl_c_at_any_point(client, script, number):
    with trial_of(script, client) as trial:
        assert findings(signal_points(trial, number)) == {}


@pytest.mark.slow
@number
@scripts
@pytest.mark.parametrize("client", ["awaited", "episode"])
def test_ctrl_c_at_any_point_under_asyncio_run(client, script, number):
    with trial_of(script, client) as trial:
        assert findings(signal_points(trial, number, under_asyncio_run=True)) == {}


@pytest.mark.slow
@number
@scripts
@pytest.mark.parametrize("client", ["awaited", "episode"])
def test_a_task_cancelled_in_any_iteration_of_the_event_loop(client, script, number):
    with trial_of(script, client) as trial:
        assert findings(islice(cancel_points(trial), number)) == {}


@pytest.mark.exhaustive
@scripts
@pytest.mark.parametrize("client", CLIENTS)
def test_each_request_fails_in_each_way(client, script):
    sends = script.name != "close where nothing closes"
    with trial_of(script, client) as trial:
        assert findings(fault_points(trial), least=7 if sends else 0) == {}


@pytest.mark.slow
@scripts
def test_a_request_fails_in_some_ways(script):
    if script.name == "close where nothing closes":
        pytest.skip("it sends no request")
    with trial_of(script, "sync") as trial:
        for fault in ("lost after", "503", "restart"):
            assert trial.with_fault(fault, 1) == ([], True)
