"""The oracle of BabyAI, by direct calls of the levels."""

from __future__ import annotations

import pytest

from agentgym_gym.envs.babyai import BABYAI
from agentgym_gym.servers.babyai.game import Game
from agentgym_gym.servers.babyai.levels import LEVELS, level_of
from agentgym_gym.servers.babyai.solution import solve

TOO_LONG = {23, 36, 38, 39, 117, 154, 183, 197, 315, 673, 757}
"""Tasks for which nothing was found that wins within the turns of an episode."""

LOCKED_IN = {246, 566}
"""Tasks in which a key lies behind the door that it opens."""


def can_be_won(task: int) -> bool:
    """Tell whether a task can be won at all: the page of the environment says which cannot."""
    if level_of(task) == "OpenDoorsOrderN4Debug":
        return " and " not in Game(task).goal
    return level_of(task) != "KeyInBox" and task not in LOCKED_IN


def assert_wins(task: int) -> None:
    plan = solve(task)
    assert plan is not None, task
    assert len(plan) <= BABYAI.max_turns, task
    game = Game(task)
    for action in plan:
        assert str(BABYAI.grammar.parse(action)) == action
        game.play(action)
    assert game.last.done, task
    assert 0 < game.last.reward <= 1, task


@pytest.mark.parametrize("task", range(160, 172))
def test_it_wins_tasks_of_twelve_levels(task):
    if can_be_won(task):
        assert_wins(task)
    else:
        assert solve(task) is None


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, 900, 100))
def test_it_wins_a_third_of_all_tasks_but_those_that_take_too_long(first):
    for task in sorted({*range(first, first + 100, 3)} - TOO_LONG):
        if can_be_won(task):
            assert_wins(task)


def test_at_least_95_percent_of_the_tasks_below_200_that_can_be_won_are_not_too_long():
    winnable = [task for task in range(200) if can_be_won(task)]
    assert len(winnable) == 191
    assert len({*winnable} - TOO_LONG) / len(winnable) >= 0.95


def test_44_tasks_cannot_be_won():
    levels = ("OpenDoorsOrderN4Debug", "KeyInBox", "GoToImpUnlock")
    assert sum(not can_be_won(task) for task in range(900) if level_of(task) in levels) == 44


@pytest.mark.parametrize("task", sorted(LOCKED_IN))
def test_the_thing_and_the_key_are_behind_the_locked_door(task):
    level = Game(task).level
    reached, todo = set(), [tuple(map(int, level.agent_pos))]
    while todo:
        x, y = todo.pop()
        there = level.grid.get(x, y)
        if (x, y) in reached or (there and (there.type == "wall" or getattr(there, "is_locked", False))):
            continue
        reached.add((x, y))
        todo += [(x + 1, y), (x - 1, y), (x, y + 1), (x, y - 1)]
    things = [level.grid.get(*place) for place in reached]
    locked = [each for each in level.grid.grid if each and each.type == "door" and each.is_locked]
    keys = {each.color for each in things if each and each.type == "key"}
    assert len(locked) == 1
    assert locked[0].color not in keys
    assert not {tuple(place) for place in level.instrs.desc.obj_poss} & reached


def test_what_is_found_for_a_task_does_not_depend_on_the_call():
    assert solve(31) == solve(31)


def test_a_seed_has_plans_of_its_own():
    plans = [solve(10, seed) for seed in range(3)]
    assert None not in plans
    assert len(set(plans)) == 3


def test_nothing_is_found_where_nothing_can_be():
    assert solve(LEVELS.index("KeyInBox")) is None


def test_the_wrong_door_is_the_first_of_two_in_every_order_of_level_16():
    """Opening the first of two doors is a failure, so that the tasks of two doors cannot be won."""
    lost = [task for task in range(15, 900, 40) if not can_be_won(task)]
    assert len(lost) > 5
    for task in lost:
        level = Game(task).level
        first = level.instrs.instr_a if type(level.instrs).__name__ == "BeforeInstr" else level.instrs.instr_b
        (door,) = first.desc.obj_set
        x, y = door.cur_pos
        for dx, dy, direction in ((1, 0, 2), (-1, 0, 0), (0, 1, 3), (0, -1, 1)):
            level.agent_pos, level.agent_dir = (x + dx, y + dy), direction
            there = level.grid.get(x + dx, y + dy)
            if there is None:
                break
        _, reward, terminated, _, _ = level.step(5)
        assert (door.is_open, terminated, reward) == (True, True, 0)
