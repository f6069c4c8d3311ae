"""Random samples of tasks."""

from __future__ import annotations

from dataclasses import replace

import pytest

from agentgym_gym import find
from agentgym_gym.errors import BadOption


def of(tasks):
    """Return an environment with these tasks."""
    return replace(find("TextCraft"), splits={"train": tasks})


def test_a_sample_repeats_and_a_larger_one_begins_with_it():
    environment = of(range(100, 1_000_100))
    assert environment.sample_tasks(3, 7) == [315527, 357244, 689584]  # on every machine
    sample = environment.sample_tasks(50, 7)
    assert sample[:20] == environment.sample_tasks(20, 7) != environment.sample_tasks(20, 8)
    assert sorted(of(range(200)).sample_tasks(200)) == list(range(200))


def test_each_task_is_equally_likely_at_each_position():
    samples = [of(range(4)).sample_tasks(2, seed) for seed in range(2_400)]
    for position in range(2):
        counts = [sum(each[position] == task for each in samples) for task in range(4)]
        assert all(500 < count < 700 for count in counts)  # 600 with a deviation of 21


@pytest.mark.parametrize("count", [0, 5])
def test_a_sample_of_more_tasks_than_there_are(count):
    with pytest.raises(BadOption, match=f"sample={count} should be"):
        of(range(4)).sample_tasks(count)
