"""Random samples of tasks."""

from __future__ import annotations

import pytest

from agentgym_gym._draw import draw
from agentgym_gym.errors import BadOption


def test_a_sample_repeats_and_a_larger_one_begins_with_it():
    tasks = range(100, 1_000_100)
    assert draw(tasks, 3, 7) == [315527, 357244, 689584]  # on every machine
    assert draw(tasks, 50, 7)[:20] == draw(tasks, 20, 7) != draw(tasks, 20, 8)
    assert sorted(draw(range(200), 200)) == list(range(200))


def test_each_task_is_equally_likely_at_each_position():
    draws = [draw(range(4), 2, seed) for seed in range(2_400)]
    for position in range(2):
        counts = [sum(each[position] == task for each in draws) for task in range(4)]
        assert all(500 < count < 700 for count in counts)  # 600 with a deviation of 21


@pytest.mark.parametrize("count", [0, 5])
def test_a_sample_of_more_tasks_than_there_are(count):
    with pytest.raises(BadOption, match=f"sample={count} should be a number from 1 to 4"):
        draw(range(4), count)
