"""Dividing items."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import agentgym_gym
import needs
from agentgym_gym.data import Item, divide, items_of
from agentgym_gym.errors import BadOption
from command_line import run

NAMES = ("Maze", "TextCraft", "Wordle")
ITEMS = st.builds(
    lambda name, task: Item(agentgym_gym.find(name), task), st.sampled_from(NAMES), st.integers(0, 24)
)
MAZE = agentgym_gym.find("Maze")


def keys(items):
    return [item.key for item in items]


@settings(max_examples=30)
@given(st.lists(ITEMS, min_size=1), st.integers(0, 3), st.data())
def test_each_item_occurs_once(items, seed, data):
    expected = set(keys(items))
    val = data.draw(st.integers(0, len(expected) - 1))
    division = divide(items, val=val, seed=seed)
    found = keys(division.train) + keys(division.val)
    assert sorted(found) == sorted(expected)
    assert len(division.val) == val
    assert division.duplicates == len(items) - len(expected)


@settings(max_examples=30)
@given(st.lists(ITEMS, min_size=2, unique_by=lambda item: item.key), st.integers(0, 3), st.randoms())
def test_the_order_of_the_items_does_not_matter(items, seed, random):
    again = [*items, items[0]]
    random.shuffle(again)
    one, other = divide(items, val=1, seed=seed), divide(again, val=1, seed=seed)
    assert keys(one.train) == keys(other.train)
    assert keys(one.val) == keys(other.val)


@settings(max_examples=30)
@given(st.lists(ITEMS, min_size=2, unique_by=lambda item: item.key), st.data())
def test_fewer_samples_are_a_part_of_more(items, data):
    more = data.draw(st.integers(2, len(items)))
    fewer = data.draw(st.integers(1, more))
    drawn = [set(keys(divide(items, num_samples=number).train)) for number in (fewer, more)]
    assert len(drawn[0]) == fewer
    assert drawn[0] <= drawn[1]


@pytest.mark.parametrize("val", [10, 0.1])
def test_every_environment_gives_its_share(val):
    items = [item for name in NAMES[:2] for item in items_of(agentgym_gym.find(name), "0:25")]
    items += items_of(agentgym_gym.find("Wordle"), "0:50")
    held = [name for name, _ in keys(divide(items, val=val).val)]
    assert held.count("Wordle") == 5
    assert {held.count("Maze"), held.count("TextCraft")} == {2, 3}


def test_the_seed_decides():
    orders = {tuple(keys(divide(items_of(MAZE), val=5, seed=seed).val)) for seed in range(20)}
    assert len(orders) == 20
    # Written down, so that a run of last year can be made again.
    assert [task for _, task in keys(divide(items_of(MAZE, "all", "all"), val=5).val)] == [18, 10, 3, 17, 21]


def test_a_share_keeps_out_at_least_one():
    assert [len(divide(items_of(MAZE, "0:4"), val=val).val) for val in (0.0, 0.01, 0.5)] == [0, 1, 2]


@pytest.mark.parametrize("val", [25, 26, -1, 0.99, 1.0, 1.5, -0.1])
def test_too_large_a_validation_split_is_an_error(val):
    with pytest.raises(BadOption, match=r"val="):
        divide(items_of(MAZE), val=val)


@pytest.mark.parametrize("number", [0, 26])
def test_more_samples_than_there_are(number):
    with pytest.raises(BadOption, match="from 1 to 20"):
        divide(items_of(MAZE), num_samples=number)


def test_no_items():
    with pytest.raises(BadOption):
        divide([])


# ------------------------------------------------------------------------------------- as the option --val


def val_of_100(text, folder):
    pytest.importorskip("pyarrow", reason=needs.reason("pyarrow"))
    return run("data", "rl", "TextCraft", "--tasks", "0:100", f"--val={text}", "--out", folder, "--json")


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("0", 0),
        ("50", 50),
        ("1", 1),
        ("0.1", 10),
        (".25", 25),
        ("0.0", 0),
        ("10%", 10),
        ("0%", 0),
        ("2.5%", 2),
    ],
)
def test_a_number_or_a_share_as_it_is_written(tmp_path, text, number):
    result = val_of_100(text, tmp_path / "rows")
    assert json.loads(result.stdout)["rows"] == {"train": 100 - number, "val": number}


@pytest.mark.parametrize("text", ["", "-1", "1.0", "100%", "1.5", "a", "10 %", "nan", "1e-1", "٣", "0.", "%"])
def test_text_that_is_neither_a_number_nor_a_share(tmp_path, text):
    result = val_of_100(text, tmp_path / "rows")
    assert (result.exit_code, result.stdout) == (2, "")
    assert f"--val={text!r} is neither a number" in result.stderr
    assert not (tmp_path / "rows").exists()
