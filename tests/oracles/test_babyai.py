"""The oracle of BabyAI, by direct calls of the levels."""

from __future__ import annotations

from collections import defaultdict

import pytest

from agentgym_gym.envs.babyai import BABYAI
from agentgym_servers.babyai._game import BabyAIGame
from agentgym_servers.babyai._levels import LEVELS, level_of
from agentgym_servers.babyai._solution import solve
from agentgym_servers.babyai._thoughts import Commentary

LOCKED_IN = {246, 566}
"""Tasks in which a key lies behind the door that it opens."""


def can_be_won(task: int) -> bool:
    """Return whether a task can be won, by the catalogue."""
    return task not in BABYAI.unwinnable


def test_at_least_95_percent_of_the_tasks_below_200_that_can_be_won_are_won():
    unknown = [task for task, why in BABYAI.unwinnable.items() if "no way" in why]
    impossible = BABYAI.unwinnable.keys() - unknown
    winnable = [task for task in range(200) if task not in impossible]
    assert len(winnable) == 191
    assert sum(map(can_be_won, winnable)) / len(winnable) >= 0.95


def test_44_tasks_cannot_be_won():
    """Tasks with a key in a box, two doors, or a key behind its door; for six others no way is known."""
    two_doors = {task for task in range(15, 900, 40) if " and " in BabyAIGame(task).goal}
    in_a_box = {task for task in range(900) if level_of(task) == "KeyInBox"}
    impossible = two_doors | in_a_box | LOCKED_IN
    assert len(impossible) == 44
    assert impossible <= BABYAI.unwinnable.keys()
    assert len(BABYAI.unwinnable.keys() - impossible) == 6


@pytest.mark.slow
@pytest.mark.parametrize(
    "task", [25, pytest.param(36, marks=pytest.mark.exhaustive), *sorted(LOCKED_IN - {25, 36})]
)
def test_no_solution_in_time_is_found_for_tasks_listed_as_impossible(task):
    plan = solve(task)
    assert plan is None or len(plan) > BABYAI.max_turns


@pytest.mark.slow
def test_no_task_of_the_test_split_begins_and_is_won_as_one_of_the_train_split():
    def shown_and_won(task):
        game = BabyAIGame(task)
        return game.goal, game.text, solve(task)

    by_beginning = defaultdict(list)
    for task in filter(can_be_won, range(900)):
        game = BabyAIGame(task)
        by_beginning[game.goal, game.text].append(task)
    alike = [tasks for tasks in by_beginning.values() if tasks[0] < 720 <= tasks[-1]]
    known = {shown_and_won(task) for tasks in alike for task in tasks if task < 720}
    again = {task for tasks in alike for task in tasks if task >= 720 and shown_and_won(task) in known}
    assert again == {*range(720, 900)} - {*BABYAI.splits["test"]} - BABYAI.unwinnable.keys()
    assert len(again) == 7


@pytest.mark.parametrize("task", sorted(LOCKED_IN))
def test_the_thing_and_the_key_are_behind_the_locked_door(task):
    level = BabyAIGame(task).level
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


def test_nothing_is_found_where_nothing_can_be():
    assert solve(LEVELS.index("KeyInBox")) is None


def test_the_wrong_door_is_the_first_of_two_in_every_order_of_level_16():
    """Opening the first of two doors is a failure, so that the tasks of two doors cannot be won."""
    lost = [task for task in range(15, 900, 40) if not can_be_won(task)]
    assert len(lost) == 20
    for task in lost:
        level = BabyAIGame(task).level
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


# --- thoughts ---

BALL_AHEAD = "There is a red ball 1 right in front of you 3 steps away.  You are not carrying anything."
NOTHING = "You cannot see any objects within sight. You are not carrying anything."


def commentary(goal, observation):
    """Return the commentary on a game that starts with an observation."""
    comments = Commentary(f"Your goal: {goal}\n{observation}")
    comments.observe(observation, None)
    return comments


def test_a_thought_has_the_thing_its_place_and_the_move():
    comments = commentary("go to the red ball", BALL_AHEAD)
    assert comments.explain("move forward", []) == (
        "I need the red ball. It is 3 ahead. I move forward towards it."
    )
    comments = commentary("go to the red ball", NOTHING)
    assert (
        comments.explain("turn left", [])
        == "I need the red ball. I do not see it. I turn left to look there."
    )


def test_a_thing_is_remembered_after_a_turn_but_not_after_a_way():
    comments = commentary("pick up a ball", BALL_AHEAD)
    comments.observe(NOTHING, "turn right")
    assert comments.explain("turn left", []).endswith("I saw it: it is 3 left. I turn left towards it.")
    comments.observe(NOTHING, "turn right")
    assert "it is 3 behind" in comments.explain("turn left", [])
    comments.observe(NOTHING, "go to grey key 1")
    assert "I do not see it." in comments.explain("turn left", [])


def test_finished_parts_are_not_needed_again():
    comments = commentary("open the red door, and put the blue key next to the red ball", NOTHING)
    assert comments.explain("turn left", ["toggle and go through red closed door 1"]).startswith(
        "I need the red door."
    )
    comments.observe(NOTHING, "toggle and go through red closed door 1")
    assert comments.explain("turn left", []).startswith("I need the blue key.")
    beside = "There is a red ball 1 1 steps in front of you and 1 steps to your left.  "
    comments.observe(f"{beside}You are carrying a blue key.", "pickup blue key 1")
    assert comments.explain("drop", []).endswith("The cell ahead is next to it, so I drop the blue key here.")
    comments.observe(beside, "drop")
    assert comments.explain("turn left", []).startswith("The order may matter. I need")


def test_a_key_is_taken_for_a_locked_door_that_was_seen():
    door = "There is a grey locked door 1 2 steps in front of you and 1 steps to your left.  "
    comments = commentary("pick up the red box", door)
    comments.observe(NOTHING, "turn right")
    assert comments.explain("pickup grey key 1", []) == (
        "I need the red box. The grey door is locked. I pick up the grey key."
    )
    assert "There may be a locked blue door." in comments.explain("pickup blue key 1", [])
    assert "The blue ball is in the way." in comments.explain("pickup blue ball 1", [])
