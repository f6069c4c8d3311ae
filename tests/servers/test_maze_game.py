"""The games of Maze, without a server."""

from __future__ import annotations

import re
from collections import deque

import pytest

from agentgym_gym.envs.maze import MAZE
from agentgym_servers.maze._game import ACTIONS, MAX_STEPS, TASKS, Game, GameTurn

WALLS = re.compile(r"to your right|to your left|above you|below you")
TOWARDS = {
    "move right": "to your right",
    "move left": "to your left",
    "move up": "above you",
    "move down": "below you",
}
STEPS = {"move right": (0, 1), "move left": (0, -1), "move up": (-1, 0), "move down": (1, 0)}


def place(observation: str) -> tuple[int, int]:
    row, column = re.findall(r"\d+", observation)[2:]
    return int(row), int(column)


def played(task: int, actions: list[str]) -> Game:
    game = Game(task)
    for action in actions:
        game.play(action)
    return game


def test_there_are_as_many_tasks_as_the_environment_has():
    assert range(TASKS) == MAZE.splits["all"]


def test_each_task_starts_at_a_place_of_its_own_and_says_where_the_goal_is():
    told = [Game(task).last for task in range(TASKS)]
    assert len({place(each.observation) for each in told}) == TASKS
    assert all(each.observation.startswith("The goal is at position 8, 6. ") for each in told)
    assert {(each.reward, each.done) for each in told} == {(0, False)}


@pytest.mark.parametrize("task", [-1, -26, TASKS, 10**30])
def test_there_is_no_other_task(task):
    with pytest.raises(ValueError, match=f"no task {task}: they go from 0 to 24"):
        Game(task)


def test_the_walls_that_are_told_are_the_walls_that_there_are():
    for task in range(TASKS):
        for action in ACTIONS:
            game = Game(task)
            before = game.last.observation
            after = game.play(action)
            if TOWARDS[action] in WALLS.findall(before):
                assert after == GameTurn(before)
            elif not after.done:
                (row, column), (down, right) = place(before), STEPS[action]
                assert place(after.observation) == (row + down, column + right)


def test_every_place_but_the_goal_is_a_task_and_leads_to_the_goal():
    starts = {place(Game(task).last.observation) for task in range(TASKS)}
    ways: deque[list[str]] = deque([[]])
    reached = {place(Game(0).last.observation)}
    wins = []
    while ways:  # a walk in breadth, by nothing but what a player sees
        way = ways.popleft()
        for action in ACTIONS:
            last = played(0, [*way, action]).last
            if last.done:
                wins.append([*way, action])
            elif place(last.observation) not in reached:
                reached.add(place(last.observation))
                ways.append([*way, action])
    assert reached == starts
    assert wins == [["move right"] * 2 + ["move down"] * 4 + ["move right"] * 3 + ["move down"] * 3]


def test_the_goal_ends_the_game():
    game = played(18, ["move down"])
    assert game.last == GameTurn("Success\n", reward=1.0, done=True)
    with pytest.raises(ValueError, match="over"):
        game.play("move up")


@pytest.mark.parametrize("action", [*ACTIONS[:1], "", "jump", "\ud800"])
def test_the_step_after_the_fiftieth_fails_the_game_whatever_it_is(action):
    game = played(0, [action] * MAX_STEPS)
    assert (game.last.reward, game.last.done) == (0, False)
    assert game.play("move right") == GameTurn("Failure\n", reward=-1.0, done=True)
    with pytest.raises(ValueError, match="over"):
        game.play("move right")


def test_the_goal_can_be_reached_by_the_fiftieth_step():
    assert played(18, [""] * 49 + ["move down"]).last.reward == 1
    assert played(18, [""] * 50 + ["move down"]).last.reward == -1


@pytest.mark.parametrize(
    "action", ["", "move", "Move left", "move left\n", " move left", "left", "go left", "move left right"]
)
def test_only_the_four_moves_are_read_and_only_to_the_letter(action):
    game = Game(9)
    before = game.last
    assert game.play(action) == before
    assert place(game.play("move left").observation) == (1, 10)
