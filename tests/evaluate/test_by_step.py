"""The metrics of each training step."""

from __future__ import annotations

from agentgym_gym.evaluate._figures.by_step import by_step
from report_runs import episode


def test_episodes_without_a_step_are_in_no_step():
    records = [episode(0), episode(1, step=3, score=1.0), episode(2, step=3, score=0.0), episode(3, step=1)]
    columns = by_step(records)
    assert (columns["step"], columns["episodes"]) == ([1, 3], [1, 2])
    assert columns["score"] == [1.0, 0.5]


def test_without_any_step_there_is_nothing():
    assert by_step([episode(0)])["step"] == []
