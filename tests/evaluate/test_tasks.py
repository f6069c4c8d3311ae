"""Choosing tasks."""

import pytest

from agentgym_gym import find
from agentgym_gym._draw import draw
from agentgym_gym.errors import BadOption
from agentgym_gym.evaluate._tasks import parse_tasks


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("0:5", [0, 1, 2, 3, 4]),
        ("3", [3]),
        ("1,2,5", [1, 2, 5]),
        ("5, 1", [5, 1]),
        ("7:", [7, 8, 9]),
        (":2", [0, 1]),
        ("all", list(range(10))),
        ("0:3,2,9", [0, 1, 2, 9]),
    ],
)
def test_what_can_be_written(text, wanted):
    assert parse_tasks(text, range(10)) == wanted


def test_the_ids_are_those_of_the_split():
    assert parse_tasks("all", range(100, 103)) == [100, 101, 102]
    assert parse_tasks("101:", range(100, 103)) == [101, 102]
    assert parse_tasks("2:9", [2, 4, 8]) == [2, 4, 8]


@pytest.mark.parametrize("text", ["10", "0:11", "3:3", "5:2", "10:", "99999999999999999"])
def test_what_is_not_there_is_told_with_what_is(text):
    with pytest.raises(BadOption, match="0 to 9"):
        parse_tasks(text, range(10))


@pytest.mark.parametrize("text", ["", ",", "-1", "a", "1:2:3", "0:2:1", "1.5", "all:", "1" * 30, "٣x"])
def test_what_cannot_be_read_is_told_with_what_can(text):
    with pytest.raises(BadOption, match="they look like '0:50'"):
        parse_tasks(text, range(10))


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


def test_an_environment_draws_from_a_split():
    webshop = find("WebShop")
    drawn = webshop.sample_tasks(20, seed=3, split="test")
    assert drawn == draw(webshop.split("test"), 20, 3)
    assert set(drawn) < set(webshop.split("test"))
