"""BabyAI's levels, what is said of them and what can be done, without a server."""

from __future__ import annotations

import base64
import hashlib
import itertools
import json
import re
import statistics
import struct
import subprocess
import sys
import time
import zlib

import numpy as np
import pytest

from agentgym_servers.babyai._choices import Choices, MinigridMove
from agentgym_servers.babyai._game import Game
from agentgym_servers.babyai._levels import LEVELS, level_of, new_level
from agentgym_servers.babyai._picture import data_url
from agentgym_servers.babyai._sight import Sight, Thing

FIRST_80 = "804fbf32cdc846fc28ea72bd8b7fe175266f9bb94ffd88d67293ad13703383a4"
"""SHA-256 of what is told at the start of tasks 0..79."""


def digest(seed: int = 0, tasks: range = range(80)) -> str:
    games = (Game(task, seed) for task in tasks)
    told = "\n".join(f"{game.goal}\n{game.text}" for game in games)
    return hashlib.sha256(told.encode()).hexdigest()


# --- the world ---


def test_there_are_forty_levels_and_none_twice():
    assert (len(LEVELS), len(set(LEVELS))) == (40, 40)
    assert [level_of(task) for task in (0, 39, 40, 899)] == [
        "GoToRedBallGrey",
        "BossLevelNoUnlock",
        "GoToRedBallGrey",
        "PickupDistDebug",
    ]


def test_the_tasks_are_the_same_everywhere():
    assert digest() == FIRST_80


def test_the_tasks_do_not_depend_on_the_hashes_of_texts_or_on_what_was_played_before():
    programme = (
        "from agentgym_servers.babyai._game import Game\n"
        "print(*(f'{game.goal} {game.text}' for game in map(Game, (39, 20, 31, 6))))"
    )
    said = subprocess.run(
        [sys.executable, "-c", programme],
        check=True,
        capture_output=True,
        text=True,
        env={"PYTHONHASHSEED": "1", "PYTHONPATH": ":".join(sys.path)},
    ).stdout
    games = {task: Game(task) for task in (6, 20, 31, 39)}
    told = " ".join(f"{games[task].goal} {games[task].text}" for task in (39, 20, 31, 6))
    assert said == f"{told}\n"  # and pygame has not said hello


def test_another_seed_has_other_tasks():
    assert digest(1, range(40)) != digest(0, range(40))
    assert Game(5, seed=1).text == Game(5 + 40 * 1_000_000).text


@pytest.mark.parametrize(("task", "named"), [(-1, -1), (-40, -1), (-41, -2)])
def test_a_negative_task_is_refused_in_the_words_of_gymnasium(task, named):
    with pytest.raises(ValueError, match=f"^Seed must be greater or equal to zero, actual value: {named}$"):
        new_level(task)


@pytest.mark.slow
def test_39_tasks_are_the_same_as_another_one():
    levels = [new_level(task)[0] for task in range(900)]
    kinds = {
        (
            level.mission,
            tuple(level.agent_pos),
            level.agent_dir,
            level.max_steps,
            level.grid.encode().tobytes(),
        )
        for level in levels
    }
    assert len(kinds) == 900 - 39


def test_a_level_says_nothing_while_it_is_drawn(capfd):
    for task in range(60):
        new_level(task)
    assert capfd.readouterr() == ("", "")


# --- play ---


def test_the_goal_ends_the_game_and_pays_less_for_each_move():
    game = Game(0)
    moves = len(game.moves_of("go to red ball 1"))
    outcome = game.play("go to red ball 1")
    assert outcome.observation.endswith("\n The task is completed.")
    assert (outcome.done, outcome.reward) == (True, 1 - 0.9 * moves / game.level.max_steps)
    with pytest.raises(ValueError, match="over"):
        game.play("turn left")


@pytest.mark.parametrize(
    ("action", "said"),
    [
        ("", "No change in state."),
        ("   ", "No change in state."),
        ("nonsense", "The action is not recognized. Please check valid actions."),
        ("go to red ball 9", "The action is not recognized. Please check valid actions."),
        ("drop", "You cannot drop the object, as you are not carrying anything."),
        ("turn\0left", "The action is not recognized. Please check valid actions."),
        ("\ud800", "The action is not recognized. Please check valid actions."),
        ("9" * 1_000_000, "The action is not recognized. Please check valid actions."),
    ],
)
def test_what_cannot_be_done_changes_nothing(action, said):
    game = Game(0)
    before = game.actions
    outcome = game.play(action)
    assert (outcome.observation, outcome.reward, outcome.done) == (said, 0, False)
    assert (game.actions, game.level.step_count) == (before, 0)


@pytest.mark.parametrize("action", ["check available actions", "CHECK", "checkmate"])
def test_whatever_says_check_lists_the_actions(action):
    game = Game(0)
    assert game.play(action).observation == "You can take the following actions: " + ", ".join(game.actions)


def test_actions_are_read_in_any_case():
    game, other = Game(1), Game(1)
    assert game.play("  TURN Left ") == other.play("turn left")


def test_a_door_that_is_opened_and_gone_through_counts_as_opened():
    game = Game(12)  # go to the red door and open it
    outcome = game.play("toggle and go through red closed door 1")
    assert (outcome.done, outcome.reward > 0) == (True, True)
    assert game.level.grid.get(*game.level.agent_pos).type == "door"


def test_a_failure_for_good_ends_the_game():
    game = Game(15)
    assert game.goal == "open the purple door and open the red door"
    outcome = game.play(next(action for action in game.actions if action.startswith("toggle and go")))
    assert (outcome.done, outcome.reward) == (True, 0)
    assert outcome.observation.endswith("\n The task is completed.")


def test_the_limit_of_moves_ends_the_game_without_saying_that_it_is_completed():
    game = Game(0)
    for _ in range(game.level.max_steps - 1):
        assert not game.play("turn left").done
    outcome = game.play("turn left")
    assert (outcome.done, outcome.reward, "completed" in outcome.observation) == (True, 0, False)


def test_doing_nothing_pays_nothing():
    for task in range(40):
        game = Game(task)
        for _ in range(20):
            assert (game.play("check available actions").reward, game.last.done) == (0, False)


def test_a_step_takes_less_than_three_milliseconds():
    took = []
    for task in range(0, 40, 2):
        game = Game(task)
        for number in range(10):
            if game.last.done:
                break
            actions = game.actions[:-1]
            action = actions[(7 * number + task) % len(actions)]
            began = time.thread_time()
            game.play(action)
            took.append(time.thread_time() - began)
    assert len(took) > 100
    assert statistics.median(took) < 0.03  # ten times what is promised: coverage may be measured


# --- ways, beside a plain search ---


def slow_ways(sight: Sight) -> dict:
    """Search breadth first with every pose once for each way to it, as the docstring of `_Ways` tells."""
    steps = ((1, 0), (0, 1), (-1, 0), (0, -1))
    solid = {each.place for each in sight.things if each.kind != "door"}
    columns, rows = sight.ranges
    start = (sight.place, sight.direction)
    queue, seen, before, first = [start], set(), {}, {}
    for place, direction in queue:
        seen.add((place, direction))
        dx, dy = steps[direction]
        ahead = (place[0] + dx, place[1] + dy)
        for key in (("at", place), ("facing", ahead)):
            if key not in first:
                first[key] = []
                pose = (place, direction)
                while pose != start:
                    pose, move = before[pose]
                    first[key].insert(0, move)
        for move, pose in (
            (MinigridMove.FORWARD, (ahead, direction)),
            (MinigridMove.LEFT, (place, (direction - 1) % 4)),
            (MinigridMove.RIGHT, (place, (direction + 1) % 4)),
        ):
            (x, y), _ = pose
            if pose not in seen and x in columns and y in rows and (x, y) not in solid:
                queue.append(pose)
                before[pose] = ((place, direction), move)
    return first


@pytest.mark.parametrize("number", range(6))
def test_ways_are_those_of_a_search_with_every_way_in_its_queue(number):
    # A small room, as the queue of the plain search grows with the number of ways.
    places = [(x, y) for x in range(8) for y in range(8)]
    inner = [(x, y) for x in (3, 4, 5) for y in (4, 5, 6)]
    ball = inner[(number * 5) % 9]
    place = (4, 6) if ball != (4, 6) else (3, 6)
    walls = [each for each in places if each not in inner]
    things = [Thing("wall", "grey wall", each, place[1] - each[1], each[0] - place[0]) for each in walls]
    things.append(Thing("ball", "red ball", ball, place[1] - ball[1], ball[0] - place[0]))
    sight = Sight(place, 3, things, None)
    expected = slow_ways(sight)
    choices = Choices(sight)
    assert choices.moves["go to red ball 1"] == expected["facing", ball]
    assert choices.moves["pickup red ball 1"] == [*expected["facing", ball], MinigridMove.PICKUP]


# --- pictures ---


def test_a_picture_is_a_png_of_the_level():
    game = Game(0)
    points = game.picture()
    kind, _, content = data_url(points).partition(",")
    assert kind == "data:image/png;base64"
    png = base64.b64decode(content)
    assert png.startswith(b"\x89PNG\r\n\x1a\n")
    chunks, at = {}, 8
    while at < len(png):
        (length,) = struct.unpack_from(">I", png, at)
        data = png[at + 4 : at + 8 + length]
        (checked,) = struct.unpack_from(">I", png, at + 8 + length)
        assert zlib.crc32(data) == checked
        chunks[data[:4]] = data[4:]
        at += 12 + length
    assert list(chunks) == [b"IHDR", b"IDAT", b"IEND"]
    width, height, *rest = struct.unpack(">IIBBBBB", chunks[b"IHDR"])
    assert ((height, width, 3), rest) == (points.shape, [8, 2, 0, 0, 0])
    rows = np.frombuffer(zlib.decompress(chunks[b"IDAT"]), np.uint8).reshape(height, 1 + 3 * width)
    assert not rows[:, 0].any()
    assert (rows[:, 1:].reshape(points.shape) == points).all()


# --- the texts, by their form ---


def test_every_listed_action_is_one_of_the_grammar():
    form = re.compile(
        r"turn (left|right)|move forward|drop|toggle|check available actions"
        r"|(go to|pickup|go through|toggle and go through) \w+ ((open|closed|locked) door|ball|key|box) [1-9]"
    )
    listed = itertools.chain.from_iterable(Game(task).actions for task in range(40))
    assert [action for action in listed if not form.fullmatch(action)] == []


def test_the_list_is_json():
    told = Game(3).text
    assert json.loads(told.rpartition("Available actions: ")[2]) == Game(3).actions
