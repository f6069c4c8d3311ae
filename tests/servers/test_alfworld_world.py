"""ALFWorld's tasks: ids, splits, rooms and types, and a solution of each."""

from __future__ import annotations

import hashlib
import random
from collections import Counter, defaultdict

import pytest

from agentgym_gym.envs.alfworld import ALFWORLD
from agentgym_servers.alfworld._game import Game
from agentgym_servers.alfworld._goals import TYPES
from agentgym_servers.alfworld._house import House, State
from agentgym_servers.alfworld._player import searching
from agentgym_servers.alfworld._rooms import KINDS, UNSEEN, room_of, rooms_of
from agentgym_servers.alfworld._solver import shortest
from agentgym_servers.alfworld._tasks import TASKS, is_unseen, task_of
from agentgym_servers.alfworld._things import camel_case, can_hold, kind_of

DIGEST = "7e07f651c65aecde86e57f6e4ae21413e2a2cccf8af5cdd75d2261a0223553dd"
"""Of all tasks of seed 0. It changes with the world, and then `WORLDS_VERSION` must be raised."""

SPLITS = {**ALFWORLD.splits, **ALFWORLD.parts}


@pytest.fixture(scope="module")
def tasks():
    return [task_of(0, task_id) for task_id in range(TASKS)]


def test_the_world_is_the_same_everywhere(tasks):
    said = repr([(task.name, task.goal, task.house, task.start.places) for task in tasks])
    assert hashlib.sha256(said.encode()).hexdigest() == DIGEST


def test_there_is_a_task_of_its_own_for_each_id(tasks):
    assert list(ALFWORLD.task_ids) == list(range(TASKS))
    assert len({(task.room, task.goal, task.house, task.start) for task in tasks}) == TASKS
    for task_id in (-1, TASKS, 10**30):
        with pytest.raises(ValueError, match="there is no task"):
            task_of(0, task_id)


def test_unseen_rooms_share_no_room_with_training(tasks):
    rooms = {name: {tasks[task_id].room for task_id in ids} for name, ids in SPLITS.items()}
    assert {room.number for room in rooms["test_unseen"]} <= UNSEEN
    assert rooms["test_unseen"].isdisjoint(rooms["train"])
    assert rooms["test_seen"] <= rooms["train"]
    assert len(rooms["train"]) == 108
    # Nor has any of them the same receptacles as one of training.
    seen = {room.receptacles for room in rooms["train"]}
    assert all(room.receptacles not in seen for room in rooms["test_unseen"])


def test_half_of_the_test_tasks_are_in_unseen_rooms():
    seen, unseen = (set(ALFWORLD.split(name)) for name in ("test_seen", "test_unseen"))
    assert len(seen) == len(unseen) == 100
    assert seen | unseen == set(ALFWORLD.split("test"))
    assert all(is_unseen(task) == (task in unseen) for task in ALFWORLD.task_ids)


@pytest.mark.parametrize("split", ["train", "test_seen", "test_unseen"])
def test_the_types_are_in_alfworlds_proportions(tasks, split):
    counts = Counter(tasks[task_id].goal.type for task_id in SPLITS[split])
    games = sum(each.games for each in TYPES.values())
    assert games == 3553
    for name, each in TYPES.items():
        assert abs(counts[name] - len(SPLITS[split]) * each.games / games) <= 1, name


def test_rooms_have_numbers_and_things_of_their_kinds():
    for kind, numbers in KINDS.items():
        rooms = rooms_of(0, kind)
        assert list(rooms) == list(numbers)
        assert len({room.receptacles for room in rooms.values()}) == len(numbers)
        assert len(UNSEEN & set(numbers)) == 3
    assert room_of(0, 7).kind == "kitchen"
    assert room_of(0, 7) != room_of(1, 7)


def test_everything_lies_where_it_may_and_nothing_is_done_at_the_start(tasks):
    for task in tasks:
        assert list(task.room.receptacles) == sorted(task.room.receptacles)
        assert list(task.house.objects) == sorted(task.house.objects)
        for name, place in zip(task.house.objects, task.start.places, strict=True):
            assert place in task.room.receptacles
            assert can_hold(kind_of(place), kind_of(name)), (name, place)
        assert not task.goal.is_met(task.house, task.start)
        target = task.goal.object
        places = [
            kind_of(place)
            for name, place in zip(task.house.objects, task.start.places, strict=True)
            if kind_of(name) == target
        ]
        assert len(places) >= task.goal.count
        assert task.goal.receptacle not in places
        assert task.name.startswith(f"{task.goal.type}-{camel_case(target)}-None-")


def test_another_seed_is_another_world(tasks):
    assert sum(task_of(1, task.id).house == task.house for task in tasks[::20]) <= 1
    assert [task_of(1, task.id).goal.type for task in tasks[::20]] == [task.goal.type for task in tasks[::20]]


def assert_solved(task):
    """Check both solutions of a task; return their lengths."""
    fewest = shortest(task.house, task.start, task.goal)
    turns = searching(task, ALFWORLD.max_turns)
    assert fewest is not None
    assert len(fewest) <= len(turns) <= ALFWORLD.max_turns
    for solution in (fewest, [text for text, _ in turns]):
        game = Game(task)
        for action in solution:
            assert not game.last.done
            game.play(action)
        assert (game.last.reward, game.last.done) == (1, True), task.id
    return len(fewest), len(turns)


def test_a_tenth_of_all_tasks_is_solved(tasks):
    for task in tasks[::10]:
        assert_solved(task)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1])
def test_every_task_is_solved_by_its_solution(seed, report_at_end):
    lengths = [assert_solved(task_of(seed, task_id)) for task_id in range(TASKS)]
    fewest, turns = (sum(each) / TASKS for each in zip(*lengths, strict=True))
    report_at_end(f"ALFWorld, seed {seed}: {TASKS} tasks solved, in {fewest:.1f} and {turns:.1f} turns")


def test_the_player_goes_only_by_what_it_has_seen():
    """Where the thing lies changes nothing until the player has seen it, as long as turns are left."""
    task = task_of(0, 2422)
    index = task.house.objects.index("potato 1")
    texts = []
    for place in ("countertop 3", "garbagecan 1", "sinkbasin 1"):
        places = (*task.start.places[:index], place, *task.start.places[index + 1 :])
        names = [name for name in task.house.objects if not name.startswith("potato") or name == "potato 1"]
        start = tuple(p for n, p in zip(task.house.objects, places, strict=True) if n in names)
        moved = task.__class__(
            task.id, task.room, task.goal, House(task.room.receptacles, tuple(names)), State(start), task.name
        )
        texts.append([text for text, _ in searching(moved, 30)])
    shared = texts[0].index("take potato 1 from countertop 3")
    assert shared > 1
    assert all(each[:shared] == texts[0][:shared] for each in texts)


def test_a_random_player_wins_next_to_nothing(tasks):
    """Even one that draws from the listed commands; see test_every_server for one that does nothing."""
    draw = random.Random(3)  # noqa: S311 - nothing secret
    won = 0
    for task in tasks[::26]:
        game = Game(task)
        for _ in range(ALFWORLD.max_turns):
            won += game.play(draw.choice(game.last.available_actions)).reward == 1
            if game.last.done:
                break
    assert won <= 4


def test_kinds_of_objects_are_spread(tasks):
    """No goal is so frequent that it could be learned by heart."""
    goals = defaultdict(set)
    for task in tasks:
        goals[task.goal.type].add((task.goal.object, task.goal.receptacle))
    assert min(map(len, goals.values())) >= 10
    assert sum(map(len, goals.values())) > 500
