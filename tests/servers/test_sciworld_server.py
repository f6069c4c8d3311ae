"""The SciWorld server: isolation, determinism, limits, its Java processes, and the errors without Java."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

import needs
from agentgym_gym import AgentGymEnv
from agentgym_gym.envs.sciworld_tasks import TASK_COUNT, SciWorldTask, splits, task_of
from agentgym_gym.errors import MissingExtra, SetupError
from agentgym_gym.local_servers import LocalServer, available, server_kind
from agentgym_servers import _all_servers
from agentgym_servers._frame.app import Failed
from agentgym_servers.sciworld import _game
from agentgym_servers.sciworld._java import missing_java
from agentgym_servers.sciworld._shorter import shorter
from agentgym_servers.sciworld._simulator import JavaProcess
from agentgym_servers.sciworld._solutions import MAX_TURNS, WON, find_solution
from agentgym_servers.sciworld._thoughts import thoughts
from agentgym_servers.sciworld._workers import Worker
from process_tree import alive

needs_java = pytest.mark.needs(*needs.needs_of_server("sciworld"))

WALK = ("open door to kitchen", "go to kitchen", "look around", "open door", "0", "wait1", "inventory")
GENETIC = SciWorldTask("find-living-thing", 7)


@pytest.fixture(scope="module")
def worker():
    """A worker with two simulators, so that a third game takes one of them."""
    worker = Worker(simulators=2)
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


def test_the_ids_are_those_of_agentgyms_server():
    assert TASK_COUNT == 4639
    assert task_of(0) == SciWorldTask("boil", 0)
    assert task_of(30) == SciWorldTask("melt", 0)
    assert task_of(4638) == SciWorldTask("identify-life-stages-2", 9)
    for task in (-1, 4639, 10**30):
        with pytest.raises(LookupError):
            task_of(task)


def test_the_splits_are_those_of_the_simulator():
    parts = splits({})
    of_boil = {name: [task for task in part if task < 30] for name, part in parts.items()}
    assert of_boil == {
        "all": [*range(30)],
        "train": [*range(14)],
        "dev": [*range(14, 21)],
        "test": [*range(21, 30)],
    }
    assert sorted([*parts["train"], *parts["dev"], *parts["test"]]) == [*range(TASK_COUNT)]
    assert 3 not in splits({3: "a reason"})["train"]


def test_without_java_the_remedy_is_printed_before_anything_starts(monkeypatch, tmp_path):
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(
        SetupError, match=r"needs Java 8 or newer, but there is no java .*apt install default-jre"
    ):
        raise missing_java()
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(SetupError, match=r"JAVA_HOME=.* contains none: install it"):
        raise missing_java()


@pytest.mark.needs("scienceworld", "py4j")
def test_without_java_all_other_servers_start(monkeypatch, tmp_path, capsys):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert "Java 8 or newer" in available("sciworld")
    with pytest.raises(SetupError, match="Java 8 or newer"):
        server_kind("sciworld").app()
    app = _all_servers(None, twin=False)
    assert "sciworld" not in app._makers
    assert "maze" in app._makers
    (line,) = [line for line in capsys.readouterr().err.splitlines() if "sciworld" in line]
    assert line.startswith("not served: sciworld: the local SciWorld server needs Java 8 or newer")


def test_without_the_extra_its_command_is_printed(monkeypatch):
    real = sys.modules["importlib.util"].find_spec
    monkeypatch.setattr(
        "importlib.util.find_spec", lambda name: None if name == "scienceworld" else real(name)
    )
    with pytest.raises(MissingExtra, match=r"pip install '\.\[servers-sciworld\]'"):
        server_kind("sciworld").app()


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


# --- with Java ---


@needs_java
@pytest.mark.slow
def test_a_task_is_the_same_in_any_process_and_beside_any_other(worker):
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
@pytest.mark.slow
def test_a_solution_does_not_depend_on_the_searches_before_it():
    paths = []
    for tasks in ((SciWorldTask("boil", 19),), (SciWorldTask("boil", 18), SciWorldTask("boil", 19))):
        process = JavaProcess(512)
        simulator = process.simulator()
        paths.append([simulator.gold_path(task.kind, task.variation) for task in tasks][-1])
        process.close()
    assert paths[0] == paths[1]


@needs_java
@pytest.mark.slow
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
def test_a_killed_java_process_is_replaced_and_its_games_go_on(worker):
    alone = played(worker, GENETIC)
    game = worker.start(GENETIC)
    for action in WALK[:3]:
        worker.play(game, action)
    before = worker.pid
    os.kill(before, signal.SIGKILL)
    for action in WALK[3:]:
        worker.play(game, action)
    assert worker.pid != before
    assert game.last == alone[-1]


@needs_java
def test_errors_of_java_are_one_line_and_the_simulator_stays(worker):
    game = worker.start(GENETIC)

    def fail(simulator):
        return simulator._process.simulator().text("getGoalProgressStr")  # it has no task

    with pytest.raises(Failed, match=r"^java.util.NoSuchElementException: None.get$"):
        worker.view(game, fail)
    worker.play(game, "look around")
    assert game.last.observation.startswith("This room")


@needs_java
@pytest.mark.slow
def test_texts_scores_and_moves_are_those_of_the_package():
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


@needs_java
def test_the_java_process_ends_with_its_parent_even_if_that_is_killed():
    program = """if True:
        import time
        from agentgym_servers.sciworld._simulator import JavaProcess
        process = JavaProcess(256)
        print(process.pid, flush=True)
        time.sleep(600)
    """
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as parent:
        java = int(parent.stdout.readline())
        assert alive({java})
        parent.kill()
    until(lambda: not alive({java}))


@needs_java
@pytest.mark.slow
@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGTERM])
def test_java_ends_with_the_server(end):
    server = LocalServer("sciworld")
    with contextlib.closing(contextlib.ExitStack()) as stack:
        server.start()
        stack.callback(server.stop)
        env_id = httpx.post(f"{server.url}/create", timeout=60).json()["id"]
        reply = httpx.post(f"{server.url}/reset", json={"id": env_id, "data_idx": 0}, timeout=300).json()
        assert reply["task_name"] == "boil"
        (java,) = children(server.process.pid)
        server.process.send_signal(end)
        server.process.wait(timeout=300)
        until(lambda: not alive({java}))


def test_a_process_that_cannot_start_says_why(monkeypatch, tmp_path):
    pytest.importorskip("scienceworld", reason=needs.reason("scienceworld"))
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text("#!/bin/sh\necho 'class file version 52.0 is too new' >&2\nexit 1\n")
    java.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(SetupError, match=r"did not start the simulator \(class file version 52.0"):
        JavaProcess(256)


def children(pid):
    """Return the ids of the Java processes that a process has started."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            head, _, tail = stat.read_text("ascii", errors="replace").rpartition(")")
            if int(tail.split()[1]) == pid and head.endswith("(java"):
                found.append(int(stat.parent.name))
    return found


def until(condition, seconds=120):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


# --- over HTTP ---


@pytest.fixture
def post(local_url):
    url = local_url("sciworld")
    with httpx.Client(base_url=url, timeout=300) as client:

        def post(route, **body):
            return client.post(route, json=body).json()

        post.get = lambda route, **query: client.get(route, params=query).json()
        post.client = client
        yield post


def test_a_failure_costs_all_and_ends_the_task(post):
    env = post("/create")["id"]
    first = post("/reset", id=env, data_idx=2936)
    assert (first["task_name"], first["var_num"], first["score"]) == ("find-living-thing", 0, 0)
    post("/step", id=env, action="open door to kitchen")
    post("/step", id=env, action="go to kitchen")
    gained = post("/step", id=env, action="look around")["score"]
    assert gained > 0
    failed = post("/step", id=env, action="focus on stove")
    assert (failed["reward"], failed["score"], failed["done"]) == (-100 - gained, -100, True)
    over = {"error": f"The task with environment {env} has finished."}
    assert post("/step", id=env, action="look around") == post.get("/observation", id=env) == over
    assert post("/reset", id=env, data_idx=2936) == first
    assert post("/close", id=env) is True
    assert post.client.post("/close", json={"id": env}).status_code == 500


def test_running_out_of_moves_ends_the_task_and_is_no_win(local_url):
    with contextlib.closing(AgentGymEnv("SciWorld", server=local_url("sciworld"))) as env:
        env.reset(options={"task_id": 0})
        rewards, terminated, truncated = [], False, False
        while not terminated and not truncated:
            _, reward, terminated, truncated, info = env.step("Action: wait")  # of eleven moves
            rewards.append(reward)
    assert (terminated, info["success"]) == (True, False)
    assert rewards == [0.0] * 10


def test_the_views_show_the_task_and_change_nothing(post):
    env = post("/create")["id"]
    assert post.get("/detail", id=env) == {"deleted": False, "done": False}
    assert "reset it first" in post.get("/goals", id=env)["error"]
    first = post("/reset", id=env, data_idx=3236)
    assert post.get("/observation", id=env) == first["observation"]
    assert post.get("/detail", id=env) == {**first, "deleted": False}
    hint = post.get("/action_hint", id=env)
    assert hint["possible_actions"] == sorted(hint["possible_actions"])
    assert "hallway" in hint["possible_objects"]
    assert "Sequential Subgoals" in post.get("/goals", id=env)["goals"]
    assert post.get("/object_tree", id=env)["object_tree"]["name"] == "universe"
    assert post.get("/task_description", id=env) == {"task_description": first["task_description"]}
    assert post.get("/state", id=env)["observation"].strip() == first["observation"]
    shown = post("/step_visual", id=env, action="Thought: x\nAction: look around</s>")
    assert shown["observation"] == first["observation"]
    assert shown["info"]["valid"] == sorted(shown["info"]["valid"])
    assert post("/step", id=env, action="look around")["observation"] == first["observation"]
    assert post("/reset", id=env, data_idx=3236) == first
    post("/close", id=env)


def test_a_move_within_a_list_of_choices(post):
    env = post("/create")["id"]
    post("/reset", id=env, data_idx=0)
    menu = post("/step", id=env, action="focus on door")
    assert menu["observation"].startswith("Ambiguous request")
    cancelled = post("/step", id=env, action="go to kitchen")
    assert cancelled["score"] == 0
    assert "kitchen" not in post("/step", id=env, action="look around")["observation"].partition(".")[0]
    post("/close", id=env)


@pytest.mark.slow
def test_many_at_once_over_http_are_as_one_alone(post):
    def play(task):
        env = post("/create")["id"]
        texts = [post("/reset", id=env, data_idx=task)["observation"]]
        texts += [post("/step", id=env, action=action)["observation"] for action in WALK]
        post("/close", id=env)
        return texts

    tasks = [0, 449, 1440, 2936, 0, 449, 1440, 2936]
    alone = {task: play(task) for task in set(tasks)}
    with ThreadPoolExecutor(len(tasks)) as pool:
        assert list(pool.map(play, tasks)) == [alone[task] for task in tasks]
