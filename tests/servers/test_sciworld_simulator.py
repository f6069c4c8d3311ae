"""SciWorld's simulators, which games share, and the solutions of its tasks: no server shows them."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter

import pytest

import needs
from agentgym_gym.envs.sciworld_tasks import SciWorldTask, task_of
from agentgym_gym.errors import SetupError
from agentgym_servers.sciworld import _game
from agentgym_servers.sciworld._shortening import shorter
from agentgym_servers.sciworld._simulator import JavaProcess
from agentgym_servers.sciworld._solutions import MAX_TURNS, WON, find_solution
from agentgym_servers.sciworld._thoughts import thoughts
from agentgym_servers.sciworld._workers import JavaWorker

needs_java = pytest.mark.needs(*needs.needs_of_server("sciworld"))

WALK = ("open door to kitchen", "go to kitchen", "look around", "open door", "0", "wait1", "inventory")
GENETIC = SciWorldTask("find-living-thing", 7)


@pytest.fixture(scope="module")
def worker():
    """A worker with two simulators, so that a third game takes one of them."""
    worker = JavaWorker(simulators=2)
    yield worker
    worker.close()


def played(worker, task, actions=WALK):
    game = worker.start(task)
    replies = [game.last]
    for action in actions:
        worker.play(game, action)
        replies.append(game.last)
    return replies


# --- without Java ---


def test_a_shorter_path_omits_what_was_done_before():
    path = ["look around", "open door to hallway", "go to hallway", "open door to bedroom", "go to bedroom"]
    path += ["pick up pot", "open door to hallway", "go to hallway", "pick up pot", "open door to kitchen"]
    path += ["go to kitchen", "look around", "open door to hallway", "go to hallway", "open door to kitchen"]
    path += ["go to kitchen", "move pot to stove", "pick up pot"]
    assert shorter(path) == [
        *("open door to hallway", "go to hallway", "open door to bedroom", "go to bedroom", "pick up pot"),
        *("go to hallway", "open door to kitchen", "go to kitchen", "move pot to stove", "pick up pot"),
    ]
    walk = ["open door to hallway", "go to hallway"]
    assert shorter(["open freezer", "open oven", *walk, "move pot to freezer"]) == [
        *("open freezer", *walk, "move pot to freezer"),
    ]
    sink = ["move pot to sink", "activate sink", "deactivate sink", "pick up pot"]
    stove = ["move pot to stove", "activate stove", "pick up pot"]
    furnace = ["move pot to blast furnace", "activate blast furnace", *["wait1"] * 23]
    assert shorter([*sink, *sink, *stove, *furnace]) == [*sink, *furnace[:2], "wait", "wait", "wait1"]


def test_thoughts_name_the_goal_of_a_walk():
    path = [
        "open door to hallway",
        "go to hallway",
        "open door to kitchen",
        "go to kitchen",
        "wait1",
        "wait1",
    ]
    assert thoughts(path)[1] == "I have to go to the kitchen, and the way there leads through the hallway."
    assert thoughts(path)[-1] == "Once more, as before. The change needs time, so I wait."
    assert all(thoughts(["dance wildly", "move pot to red box", "focus on blue box", "connect a to b"]))


def test_an_action_is_cut_and_half_a_pair_replaced():
    assert len(_game.cleaned("x" * 10_000)) == _game.MAX_ACTION_CHARS
    assert _game.cleaned("a\ud800b") == "a?b"


def test_a_process_that_cannot_start_is_an_error_with_the_reason(monkeypatch, tmp_path):
    pytest.importorskip("scienceworld", reason=needs.reason("scienceworld"))
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text("#!/bin/sh\necho 'class file version 52.0 is too new' >&2\nexit 1\n")
    java.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(SetupError, match="class file version 52"):
        JavaProcess(256)


# --- with Java ---


@needs_java
@pytest.mark.slow
def test_a_task_is_the_same_in_any_process_and_alongside_any_other(worker):
    alone = played(worker, GENETIC)
    other = task_of(0)
    one, two, three = worker.start(GENETIC), worker.start(other), worker.start(GENETIC)
    replies = [one.last]
    for action in WALK:  # each of the three takes the simulator of another: there are two
        for game in (one, two, three):
            worker.play(game, action)
        replies.append(one.last)
        assert three.last == one.last
        assert two.last != one.last
    assert replies == alone


@needs_java
@pytest.mark.exhaustive
def test_a_solution_does_not_depend_on_the_searches_before_it():
    paths = []
    for tasks in ((SciWorldTask("boil", 19),), (SciWorldTask("boil", 18), SciWorldTask("boil", 19))):
        process = JavaProcess(512)
        simulator = process.simulator()
        paths.append([simulator.gold_path(task.kind, task.variation) for task in tasks][-1])
        process.close()
    assert paths[0] == paths[1]


@needs_java
@pytest.mark.exhaustive
def test_a_solution_that_the_rules_leave_too_long_loses_actions_that_it_does_not_need(worker):
    task = SciWorldTask("melt", 2)
    process = JavaProcess(512)
    simulator = process.simulator()
    by_rules = shorter(simulator.gold_path(task.kind, task.variation))
    path = find_solution(task, simulator)
    process.close()
    assert len(by_rules) > MAX_TURNS >= len(path)
    assert [reply.score for reply in played(worker, task, path)][-1] == WON


@needs_java
@pytest.mark.slow
def test_texts_scores_and_moves_match_the_package():
    """The package makes more calls for each step, such as for the list of valid actions."""
    tasks = [(task.kind, task.variation) for task in map(task_of, (0, 449, 1440, 2936, 4240))]
    walk = ("open door to kitchen", "go to kitchen", "open fridge", "wait1", "inventory", "dance")
    actions = ("look around", *walk, "look around")  # without a menu, whose order is another one there
    program = """if True:
        import json, sys
        from scienceworld import ScienceWorldEnv
        tasks, actions = json.loads(sys.argv[1])
        env = ScienceWorldEnv()
        for kind, variation in tasks:
            env.load(kind, variation)
            for action in actions:
                observation, _, _, info = env.step(action)
                print(json.dumps([observation, info["score"], info["moves"]]))
        env.close()
    """
    asked = json.dumps([tasks, actions])
    printed = subprocess.run(
        [sys.executable, "-c", program, asked], capture_output=True, text=True, check=True, timeout=600
    )
    theirs = iter(map(json.loads, printed.stdout.splitlines()))
    process = JavaProcess(512)
    try:
        simulator = process.simulator()
        for kind, variation in tasks:
            simulator.load(kind, variation)
            for action in actions:
                ours, (observation, *numbers) = simulator.step(action), next(theirs)
                assert [ours.score, ours.moves] == numbers
                assert Counter(ours.observation.split()) == Counter(observation.split())  # but for the order
    finally:
        process.close()
    assert next(theirs, None) is None
