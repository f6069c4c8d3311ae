"""Choosing tasks."""

from dataclasses import replace

import pytest

import command_line
from agentgym_gym import find
from agentgym_gym.data import items_of
from agentgym_gym.errors import BadOption

MAZE = find("Maze")  # which has the tasks 0 to 24


def ids(environment, text, split=None):
    return [item.task_id for item in items_of(environment, text, split)]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("0:5", [0, 1, 2, 3, 4]),
        ("3", [3]),
        ("1,2,5", [1, 2, 5]),
        ("5, 1", [5, 1]),
        ("22:", [22, 23, 24]),
        (":2", [0, 1]),
        ("0:3,2,9", [0, 1, 2, 9]),
        (":", list(range(25))),
        ("all", list(MAZE.split("train"))),
    ],
)
def test_task_selections(text, wanted):
    assert ids(MAZE, text) == wanted


def test_the_ids_match_the_split():
    sparse = replace(MAZE, splits={"train": range(100, 103), "test": (2, 4, 8)})
    assert ids(sparse, "all", "train") == [100, 101, 102]
    assert ids(sparse, "101:", "train") == [101, 102]
    assert ids(sparse, "2:9", "test") == [2, 4, 8]


@pytest.mark.parametrize("text", ["25", "0:26", "3:3", "5:2", "25:", "99999999999999999"])
def test_missing_tasks_are_an_error_that_lists_the_others(text):
    with pytest.raises(BadOption, match="0 to 24"):
        items_of(MAZE, text)


@pytest.mark.parametrize("text", [",", "-1", "a", "1:2:3", "0:2:1", "1.5", "all:", "1" * 30, "٣x"])
def test_unreadable_selections_are_an_error_with_the_valid_forms(text, tmp_path):
    words = ["eval", "Maze", "--agent", "random", "--out", tmp_path / "run", f"--tasks={text}"]
    refused = command_line.run(*words)
    assert (refused.exit_code, "'0:50'" in refused.stderr) == (2, True), refused.stderr


def test_an_environment_draws_from_a_split():
    webshop = find("WebShop")
    drawn = webshop.sample_tasks(20, seed=3, split="test")
    assert drawn == webshop.sample_tasks(30, seed=3, split="test")[:20]
    assert len(set(drawn)) == 20
    assert set(drawn) < set(webshop.split("test"))
