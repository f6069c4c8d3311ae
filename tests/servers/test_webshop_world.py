"""The shop that is made from a seed: its tasks, and the cost of a wrong choice."""

from __future__ import annotations

import random
import re
from collections import Counter

import pytest

from agentgym_gym.envs.webshop import WEBSHOP
from local_game import LocalGame

SAMPLE = WEBSHOP.task_ids[::37]


@pytest.fixture(scope="module")
def game():
    with LocalGame("WebShop") as game:
        yield game


def clickables(game):
    return game.get("/available_actions", env_idx=game.id).json()["clickables"]


def split_solution(game, task):
    """Return a solution's actions up to the click on the product, the options, and the purchase."""
    actions = [str(action) for action in game.win(task)[0]]
    at = next(n for n, action in enumerate(actions) if re.fullmatch(r"click\[\w{10}\]", action))
    return actions[: at + 1], [action[len("click[") : -1] for action in actions[at + 1 : -1]], actions[-1]


@pytest.mark.parametrize(
    "tasks",
    [SAMPLE[::20], pytest.param(SAMPLE[::3], marks=pytest.mark.slow)],
    ids=len,
)
def test_the_instruction_has_all_that_is_scored(game, tasks):
    """Each option with its value, the words of the search, and a price above the lowest of the product."""
    for task in tasks:
        to_item, options, _ = split_solution(game, task)
        goal = game.reset(task).goal
        assert all(re.search(rf"[a-z ]+: {re.escape(value)}(,|$)", goal) for value in options), task
        page = game.play(task, to_item).observation
        low = float(re.search(r"Price: \$([\d.]+)", page)[1])
        assert float(re.search(r", and price lower than (\d+\.\d\d) dollars$", goal)[1]) > low
        assert set(options) <= set(clickables(game))


@pytest.mark.slow
def test_every_option_of_the_solution_counts(game):
    """Without it, it is less than 1."""
    counted = 0
    for task in SAMPLE[::5]:
        to_item, options, buy = split_solution(game, task)
        for left_out in options:
            rest = [f"click[{value}]" for value in options if value != left_out]
            assert 0 < game.play(task, [*to_item, *rest, buy]).reward < 1, task
            counted += 1
    assert counted > 40


@pytest.mark.slow
def test_a_wrong_choice_usually_costs(game, report_at_end):
    """Over each wrong value of each option of some tasks."""
    costs = Counter()
    for task in SAMPLE[::4]:
        to_item, options, buy = split_solution(game, task)
        page = game.play(task, to_item).observation
        right = [f"click[{value}]" for value in options]
        values = page.partition(" [SEP] Price: ")[0].split(" [SEP] ")[4:-1]
        for wrong in set(values) & set(clickables(game)) - set(options):
            # A later choice of the same option replaces the earlier one.
            costs[game.play(task, [*to_item, *right, f"click[{wrong}]", buy]).reward < 1] += 1
    report_at_end(f"wrong choices of local WebShop tasks: {costs[True]} cost, {costs[False]} do not")
    assert costs[True] > 0.9 * costs.total() > 200


@pytest.mark.slow
def test_a_random_buyer_rarely_gets_it_right(game):
    """It searches for words of the instruction, and clicks any product, any options, and the purchase."""
    scores = []
    for task in SAMPLE[::2]:
        draw = random.Random(task)  # noqa: S311 - nothing secret
        words = game.reset(task).goal.split()
        game.step(f"search[{' '.join(draw.sample(words, 3))}]")
        shown = [each for each in clickables(game) if re.fullmatch(r"b0\w{8}", each)]
        if not shown:
            scores.append(0.0)
            continue
        game.step(f"click[{draw.choice(shown)}]")
        values = clickables(game)[6:]
        for value in draw.sample(values, min(2, len(values))):
            game.step(f"click[{value}]")
        scores.append(game.step("click[buy now]").reward)
    assert sum(scores) / len(scores) < 0.5
    assert sum(score == 1.0 for score in scores) / len(scores) < 0.03
