"""How rows are shared between environments by weights."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from verl_bridge.recipes import EnvChoice, RlRecipe, Share
from verl_bridge.recipes._env_shares import apportion, interleave, repeat_to

MAZE, CRAFT, SHOP = (f"agentgym_gym:agentgym/{name}-v0" for name in ("Maze", "TextCraft", "WebShop"))
WEIGHTS = st.lists(st.floats(min_value=1e-3, max_value=1e3), min_size=1, max_size=6)


@given(st.integers(0, 5_000), WEIGHTS)
def test_each_count_is_within_one_row_of_its_share(total, weights):
    counts = apportion(total, weights)
    assert sum(counts) == total
    whole = sum(map(Fraction, weights))
    for count, weight in zip(counts, weights, strict=True):
        assert abs(count - total * Fraction(weight) / whole) < 1


def test_shares_that_can_be_exact_are():
    assert apportion(64, [1, 2, 1]) == [16, 32, 16]
    assert apportion(64, [1e308, 1e308]) == [32, 32]
    assert apportion(64, [1, 1, 1]) == [22, 21, 21]


@given(st.integers(1, 40), st.integers(0, 200))
def test_no_task_is_there_twice_more_than_another(tasks, count):
    rows = repeat_to(range(tasks), count)
    times = [rows.count(task) for task in range(tasks)]
    assert len(rows) == count
    assert max(times) - min(times) <= 1


@given(st.lists(st.integers(1, 60), min_size=1, max_size=5))
def test_each_prefix_has_the_parts_in_proportion(sizes):
    parts = [[(number, at) for at in range(size)] for number, size in enumerate(sizes)]
    rows = interleave(parts)
    assert sorted(rows) == sorted(each for part in parts for each in part)
    held = [0] * len(sizes)
    for end, (of, _) in enumerate(rows, 1):
        held[of] += 1
        for count, size in zip(held, sizes, strict=True):
            assert abs(count - end * size / len(rows)) <= len(sizes)


@pytest.mark.parametrize(
    ("rows", "tasks", "available", "said"),
    [
        (20, 20, 20, ""),
        (43, 43, 64, "43 of 64 tasks"),
        (40, 20, 20, "each of 20 tasks 2 times"),
        (21, 17, 17, "each of 17 tasks 1 or 2 times"),
    ],
)
def test_the_lines_about_the_tasks(rows, tasks, available, said):
    assert Share("a/B-v0", 1.0, rows, tasks, available, 8).note == said


def test_a_recipe_of_several_has_the_largest_lengths():
    one = RlRecipe(SHOP).lengths
    several = RlRecipe(envs=[EnvChoice(MAZE), EnvChoice(SHOP), EnvChoice(CRAFT)])
    assert several.several
    assert several.lengths == one
    assert [several.lengths_of(env).turns for env in several.environments] == [20, 25, 20]
    assert several.name == "Maze-v0+WebShop-v0+TextCraft-v0-grpo-test-Qwen--Qwen2.5-3B-Instruct"


def test_the_turn_limit_of_an_environment_comes_from_its_arguments():
    limited = EnvChoice(CRAFT, {"max_turns": 40})
    both = RlRecipe(envs=[limited, EnvChoice("own:own/Env-v0", {"max_episode_steps": 5})])
    assert [both.lengths_of(env).turns for env in both.environments] == [40, 5]
    assert (both.lengths.turns, both.lengths.response) == (40, 2 * RlRecipe(CRAFT).lengths.response)
    assert RlRecipe(envs=[limited, EnvChoice(MAZE)], turns=10).lengths.turns == 10


@pytest.mark.parametrize(
    ("choices", "said"),
    [
        ({"env_id": MAZE, "envs": [EnvChoice(CRAFT)]}, "give envs, or env_id and env_kwargs"),
        ({"envs": [EnvChoice(MAZE), EnvChoice(MAZE)]}, "is given twice"),
        ({}, "env_id='' is not the id"),
    ],
)
def test_an_invalid_recipe_is_an_error(choices, said):
    with pytest.raises(ValueError, match=said):
        RlRecipe(**choices)


@pytest.mark.parametrize("weight", [0, -1, float("nan"), float("inf")])
def test_an_invalid_weight_is_an_error(weight):
    with pytest.raises(ValueError, match=r"agentgym/Maze-v0 should be a positive number"):
        EnvChoice(MAZE, weight=weight)
