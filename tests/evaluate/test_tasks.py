"""Choosing tasks."""

import pytest

from agentgym_gym import find
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


def test_an_environment_draws_from_a_split():
    webshop = find("WebShop")
    drawn = webshop.sample_tasks(20, seed=3, split="test")
    assert drawn == webshop.sample_tasks(30, seed=3, split="test")[:20]
    assert len(set(drawn)) == 20
    assert set(drawn) < set(webshop.split("test"))
