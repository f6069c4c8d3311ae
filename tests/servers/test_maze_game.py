"""The games of Maze on a server in this process."""

from __future__ import annotations

import re
from collections import deque

import pytest

from agentgym_gym import errors
from agentgym_gym.envs.maze import MAZE
from agentgym_gym.wire import Outcome
from local_game import LocalGame

WALLS = re.compile(r"to your right|to your left|above you|below you")
TOWARDS = {
    "move right": "to your right",
    "move left": "to your left",
    "move up": "above you",
    "move down": "below you",
}
STEPS = {"move right": (0, 1), "move left": (0, -1), "move up": (-1, 0), "move down": (1, 0)}
FAILED = Outcome("Failure\n", -1.0, done=True)


@pytest.fixture(scope="module")
def game():
    with LocalGame("Maze") as game:
        yield game


def place(observation: str) -> tuple[int, int]:
    row, column = re.findall(r"\d+", observation)[2:]
    return int(row), int(column)


def test_each_task_shows_where_the_goal_is(game):
    starts = [game.reset(task).observation for task in MAZE.task_ids]
    assert len(set(map(place, starts))) == len(starts) == 25
    assert all(start.startswith("The goal is at position 8, 6. ") for start in starts)


def test_the_walls_in_the_text_are_the_walls_of_the_maze(game):
    for task in MAZE.task_ids:
        for action, (down, right) in STEPS.items():
            before = game.reset(task).observation
            after = game.step(action)
            if TOWARDS[action] in WALLS.findall(before):
                assert after == Outcome(before, 0.0, done=False)
            elif not after.done:
                row, column = place(before)
                assert place(after.observation) == (row + down, column + right)


@pytest.mark.slow
def test_every_place_but_the_goal_is_a_task_and_leads_to_the_goal(game):
    starts = {place(game.reset(task).observation) for task in MAZE.task_ids}
    ways: deque[list[str]] = deque([[]])
    reached = {place(game.reset(0).observation)}
    wins = []
    while ways:  # a walk in breadth, by nothing but what a player sees
        way = ways.popleft()
        for action in STEPS:
            last = game.play(0, [*way, action])
            if last.done:
                wins.append([*way, action])
            elif place(last.observation) not in reached:
                reached.add(place(last.observation))
                ways.append([*way, action])
    assert reached == starts
    assert wins == [["move right"] * 2 + ["move down"] * 4 + ["move right"] * 3 + ["move down"] * 3]


def test_the_goal_ends_the_game(game):
    assert game.play(18, ["move down"]) == Outcome("Success\n", 1.0, done=True)
    with pytest.raises(errors.EnvironmentFailed, match="has finished"):
        game.step("move up")


@pytest.mark.parametrize("action", ["move left", "", "jump", "\ud800"])
def test_any_step_after_the_fiftieth_fails_the_game(game, action):
    fiftieth = game.play(0, [action] * 50)
    assert (fiftieth.reward, fiftieth.done) == (0, False)
    assert game.step("move right") == FAILED
    with pytest.raises(errors.EnvironmentFailed, match="has finished"):
        game.step("move right")


@pytest.mark.parametrize(
    "action", ["", "move", "Move left", "move left\n", " move left", "left", "go left", "move left right"]
)
def test_only_the_four_moves_are_read_and_only_to_the_letter(game, action):
    before = game.reset(9).observation
    assert game.step(action) == Outcome(before, 0.0, done=False)
    assert place(game.step("move left").observation) == (1, 10)
