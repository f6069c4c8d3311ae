"""ALFWorld's tasks: rooms, types and goals, and how little chance reaches."""

from __future__ import annotations

import functools
import json
import os
import random
import re
from collections import Counter, defaultdict
from pathlib import Path
from typing import NamedTuple

import pytest

from agentgym_gym.envs.alfworld import ALFWORLD
from household_games import comparison, search_with_one
from local_game import LocalGame

SPLITS = {name: ALFWORLD.split(name) for name in ("train", "test", "test_seen", "test_unseen")}
"""Tasks of the generated world; the others are of ALFWorld's own games."""

TRAINED = {
    "pick_and_place_simple": 672,
    "look_at_obj_in_light": 196,
    "pick_clean_then_place_in_recep": 448,
    "pick_heat_then_place_in_recep": 321,
    "pick_cool_then_place_in_recep": 394,
    "pick_two_obj_and_place": 389,
}
"""How many of AgentGym's training tasks are of each type."""


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
    # Except for two bathrooms, none of them has the same receptacles as one of training.
    seen = {tasks[task].receptacles for task in SPLITS["train"]}
    alike = {tasks[task].room for task in SPLITS["test_unseen"] if tasks[task].receptacles in seen}
    assert alike <= {404, 424}


@pytest.mark.slow
def test_a_room_has_the_same_receptacles_in_each_of_its_tasks():
    rooms = {(task.room, task.receptacles) for task in all_tasks()}
    assert len(rooms) == len({room for room, _ in rooms})


def test_half_of_the_test_tasks_are_in_unseen_rooms():
    seen, unseen = (set(SPLITS[name]) for name in ("test_seen", "test_unseen"))
    assert len(seen) == len(unseen) == 100
    assert seen | unseen == set(SPLITS["test"])


@pytest.mark.slow
@pytest.mark.parametrize("split", ["train", "test_seen", "test_unseen"])
def test_the_types_are_in_agentgyms_proportions(split):
    tasks = all_tasks()
    counts = Counter(tasks[task].type for task in SPLITS[split])
    total = sum(TRAINED.values())
    assert total == len(SPLITS["train"])
    for name, number in TRAINED.items():
        assert abs(counts[name] - len(SPLITS[split]) * number / total) <= 1, name


@pytest.mark.slow
@pytest.mark.needs("agentgym")
def test_the_training_tasks_have_the_objects_and_receptacles_of_agentgyms():
    file = Path(os.environ["AGENTGYM"], "agentenv-alfworld", "configs", "mappings_train.json")
    theirs = [entry["task_type"].split("-") for entry in json.loads(file.read_text("utf-8"))]
    tasks = all_tasks()
    ours = Counter(tasks[task][:3] for task in SPLITS["train"])
    assert ours == Counter((kind, name, target) for kind, name, _, target, _ in theirs)


@pytest.mark.parametrize("name", comparison())
def test_houses_are_like_alfworlds(name):
    made, real = comparison()[name]
    assert made == pytest.approx(real, rel=0.05 if name == "turns of the expert" else 0.25)


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
    places = ("garbagecan 1", "fridge 1", "countertop 1")
    near, *others = [search_with_one(7, "potato 1", place) for place in places]
    shared = near.index("take potato 1 from garbagecan 1")
    assert shared > 3
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
