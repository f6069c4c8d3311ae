"""ALFWorld's tasks: rooms, types and goals, and how little chance reaches."""

from __future__ import annotations

import functools
import random
import re
from collections import Counter, defaultdict
from typing import NamedTuple

import pytest

from agentgym_gym.envs.alfworld import ALFWORLD
from household_games import search_with_one
from local_game import LocalGame

SPLITS = {name: ALFWORLD.split(name) for name in ("train", "test", "test_seen", "test_unseen")}
"""Tasks of the generated world; the others are of ALFWorld's own games."""

GAMES = {
    "pick_and_place_simple": 790,
    "look_at_obj_in_light": 308,
    "pick_clean_then_place_in_recep": 650,
    "pick_heat_then_place_in_recep": 459,
    "pick_cool_then_place_in_recep": 533,
    "pick_two_obj_and_place": 813,
}
"""How many of ALFWorld's training games are of each type."""


class Task(NamedTuple):
    """What the start of a task shows."""

    type: str
    object: str
    target: str
    room: int
    receptacles: frozenset[str]


@functools.cache
def all_tasks():
    """Return what the start of each task shows; no fixture, of which coverage would be measured."""
    with LocalGame("ALFWorld") as game:
        game.reset(0)
        return [start_of(game, task) for task in ALFWORLD.task_ids]


def start_of(game, task):
    reply = game.post("/reset", id=game.id, game=task, world_type="Text").json()
    name = re.match(r"(?P<type>\w+)-(?P<object>\w+)-None-(?P<target>\w+)-(?P<room>\d+)/", reply["task_type"])
    receptacles = frozenset(a for a in reply["available_actions"] if a.startswith("go to "))
    return Task(name["type"], name["object"], name["target"], int(name["room"]), receptacles)


@pytest.mark.slow
def test_unseen_rooms_share_no_room_with_training():
    tasks = all_tasks()
    rooms = {name: {tasks[task].room for task in ids} for name, ids in SPLITS.items()}
    assert rooms["test_unseen"].isdisjoint(rooms["train"])
    assert rooms["test_seen"] <= rooms["train"]
    assert len(rooms["train"]) == 108
    # Nor has any of them the same receptacles as one of training.
    seen = {tasks[task].receptacles for task in SPLITS["train"]}
    assert all(tasks[task].receptacles not in seen for task in SPLITS["test_unseen"])


@pytest.mark.slow
def test_a_room_has_the_same_receptacles_in_each_of_its_tasks():
    tasks = all_tasks()
    rooms = {(task.room, task.receptacles) for task in tasks}
    assert len(rooms) == len({room for room, _ in rooms}) == len({receptacles for _, receptacles in rooms})


def test_half_of_the_test_tasks_are_in_unseen_rooms():
    seen, unseen = (set(SPLITS[name]) for name in ("test_seen", "test_unseen"))
    assert len(seen) == len(unseen) == 100
    assert seen | unseen == set(SPLITS["test"])


@pytest.mark.slow
@pytest.mark.parametrize("split", ["train", "test_seen", "test_unseen"])
def test_the_types_are_in_alfworlds_proportions(split):
    tasks = all_tasks()
    counts = Counter(tasks[task].type for task in SPLITS[split])
    games = sum(GAMES.values())
    assert games == 3553
    for name, number in GAMES.items():
        assert abs(counts[name] - len(SPLITS[split]) * number / games) <= 1, name


@pytest.mark.slow
def test_kinds_of_objects_are_spread():
    """No goal is so frequent that it could be learned by heart."""
    tasks = all_tasks()
    goals = defaultdict(set)
    for task in tasks:
        goals[task.type].add((task.object, task.target))
    assert min(map(len, goals.values())) >= 10
    assert sum(map(len, goals.values())) > 500


def test_the_player_uses_only_its_observations():
    """Where the thing lies changes nothing until the player has seen it, as long as turns are left."""
    places = ("countertop 3", "garbagecan 1", "sinkbasin 1")
    near, *others = [search_with_one(2422, "potato 1", place) for place in places]
    shared = near.index("take potato 1 from countertop 3")
    assert shared > 1
    assert all(each[:shared] == near[:shared] for each in others)


@pytest.mark.slow
def test_a_random_player_wins_next_to_nothing():
    """Even one that draws from the listed commands; see test_every_world for one that draws from all."""
    draw = random.Random(3)  # noqa: S311 - nothing secret
    won = 0
    with LocalGame("ALFWorld") as game:
        for task in ALFWORLD.task_ids[::26]:
            outcome = game.reset(task)
            for _ in range(ALFWORLD.max_turns):
                outcome = game.step(draw.choice(outcome.available_actions))
                won += outcome.reward == 1
                if outcome.done:
                    break
    assert won <= 4
