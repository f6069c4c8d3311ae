"""What the tests are helped by."""

from __future__ import annotations

import signal
import sys
import threading
from pathlib import Path

import pytest

import programs
from interrupts import Point, interrupted, points_of, spread


@pytest.mark.parametrize("here", [signal.SIG_IGN, signal.SIG_DFL, signal.default_int_handler])
def test_a_program_is_ended_by_ctrl_c_however_the_tests_were_started(here):
    before = signal.signal(signal.SIGINT, here)
    try:
        ended = programs.run(
            [sys.executable, "-Sc", "import signal; signal.raise_signal(signal.SIGINT)"], stderr=-3
        )
        assert signal.getsignal(signal.SIGINT) is here
    finally:
        signal.signal(signal.SIGINT, before)
    assert ended.returncode == -signal.SIGINT


def test_a_ctrl_c_can_come_after_each_call_but_not_between_a_with_and_its_exit():
    lock, done = threading.Lock(), []

    def operation():
        with lock:
            done.append(1)
        done.append(2)

    here = str(Path(__file__))
    points = points_of(operation, within=here)
    assert {each.function.rpartition(".")[2] for each in points} == {"operation"}
    assert {each.line - points[0].line for each in points} >= {0, 1, 2}
    states = []
    for point in points:
        done.clear()
        assert interrupted(operation, point)
        assert not lock.locked()
        states.append(tuple(done))
    assert sorted(set(states)) == [(), (1,), (1, 2)]
    assert not interrupted(operation, points[0]._replace(visit=2))


def test_a_ctrl_c_can_come_between_a_call_and_the_assignment_of_its_result():
    kept = []

    def operation():
        kept.append(next(iter([1])))

    points = points_of(operation, within=str(Path(__file__)))
    lost = []
    for point in points:
        kept.clear()
        interrupted(operation, point)
        lost.append(not kept)
    assert lost == sorted(lost, reverse=True)
    assert len(points) >= 4  # at the start, and after each of three calls
    assert lost[-1] is False


def test_points_are_taken_evenly():
    points = [Point("a.py", "run", line, 0, 1) for line in range(1, 12)]
    assert [point.line for point in spread(points, 3)] == [1, 6, 11]
    assert spread(points, 11) == spread(points, 12) == points
