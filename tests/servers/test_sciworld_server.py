"""The SciWorld server: isolation, determinism, limits, its Java processes, and the errors without Java."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

import needs
import programs
from agentgym_gym import AgentGymEnv
from agentgym_gym.envs.sciworld_tasks import TASK_COUNT, SciWorldTask, splits, task_of
from agentgym_gym.errors import BadOption, EnvironmentFailed, MissingExtra, SetupError
from agentgym_gym.local_servers import LocalServer, available, server_kind
from local_game import LocalGame
from process_tree import alive

needs_java = pytest.mark.needs(*needs.needs_of_server("sciworld"))

WALK = ("open door to kitchen", "go to kitchen", "look around", "open door", "0", "wait1", "inventory")


# --- without Java ---


def test_the_ids_match_agentgyms_server():
    assert TASK_COUNT == 4639
    assert task_of(0) == SciWorldTask("boil", 0)
    assert task_of(30) == SciWorldTask("melt", 0)
    assert task_of(4638) == SciWorldTask("identify-life-stages-2", 9)
    for task in (-1, 4639, 10**30):
        with pytest.raises(LookupError):
            task_of(task)


def test_the_splits_match_the_simulator():
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
    pytest.importorskip("scienceworld", reason=needs.reason("scienceworld"))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SetupError, match=r"Java 8 or newer.*apt install"):
        server_kind("sciworld").app()
    assert "Java 8 or newer" in available("sciworld")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(SetupError, match=r"JAVA_HOME=.* contains none"):
        server_kind("sciworld").app()


@pytest.mark.slow
@pytest.mark.needs("scienceworld", "py4j")
def test_without_java_all_other_servers_start(tmp_path):
    variables = programs.environment(PATH=str(tmp_path), JAVA_HOME=str(tmp_path))
    command = [sys.executable, "-m", "agentgym_servers", "all", "--exit-with-parent"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    process = programs.start(command, env=variables, **pipes)
    url = process.stdout.readline().split()[-1]
    names = httpx.get(url, timeout=60).json()["servers"]
    _, console = process.communicate(timeout=60)
    assert "sciworld" not in names
    assert "maze" in names
    (line,) = [line for line in console.splitlines() if "sciworld" in line]
    assert line.startswith("not served: sciworld: ")
    assert "Java 8 or newer" in line


def test_without_the_extra_its_command_is_printed(monkeypatch):
    real = importlib.util.find_spec
    hidden = "scienceworld"
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == hidden else real(name))
    with pytest.raises(MissingExtra, match="servers-sciworld"):
        server_kind("sciworld").app()


# --- with Java ---


@needs_java
@pytest.mark.slow
@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGTERM])
def test_a_killed_java_process_is_replaced_and_java_ends_with_the_server(end):
    """A game goes on in the new process."""
    server = LocalServer("sciworld")
    with contextlib.closing(contextlib.ExitStack()) as stack:
        server.start()
        stack.callback(server.stop)
        client = stack.enter_context(httpx.Client(base_url=server.url, timeout=300))

        def post(route, **body):
            return client.post(route, json={"id": env_id, **body}).json()

        env_id = client.post("/create").json()["id"]
        assert post("/reset", data_idx=0)["task_name"] == "boil"
        alone = [post("/step", action=action) for action in WALK]
        post("/reset", data_idx=0)
        begun = [post("/step", action=action) for action in WALK[:3]]
        (before,) = children(server.process.pid)
        os.kill(before, signal.SIGKILL)
        assert begun + [post("/step", action=action) for action in WALK[3:]] == alone
        (java,) = children(server.process.pid)
        assert java != before
        server.process.send_signal(end)
        server.process.wait(timeout=300)
        until(lambda: not alive({java}))


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


@pytest.mark.slow
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


@pytest.mark.slow
def test_running_out_of_moves_ends_the_task_without_a_win(local_url):
    with contextlib.closing(AgentGymEnv("SciWorld", server=local_url("sciworld"))) as env:
        env.reset(options={"task_id": 0})
        rewards, terminated, truncated = [], False, False
        while not terminated and not truncated:
            _, reward, terminated, truncated, info = env.step("Action: wait")  # of eleven moves
            rewards.append(reward)
    assert (terminated, info["success"]) == (True, False)
    assert rewards == [0.0] * 10


@pytest.mark.slow
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


@pytest.mark.slow
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
def test_many_at_once_over_http_are_as_one_by_one(post):
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


# --- simplifications ---


@needs_java
@pytest.mark.slow
def test_doors_are_open_and_one_teleports_under_easy():
    with LocalGame("SciWorld") as usual, LocalGame("SciWorld", simplifications="easy") as easy:
        usual.reset(30)
        easy.reset(30)
        assert easy.head == "agentgym-servers/3 (SciWorld, simplified easy)"
        assert usual.head == "agentgym-servers/3 (SciWorld)"
        assert "door" in usual.step("look around").observation
        assert "closed" not in easy.step("look around").observation
        assert "You teleport to" in easy.step("teleport to kitchen").observation
        assert "No known action" in usual.step("teleport to kitchen").observation


@needs_java
@pytest.mark.slow
def test_a_task_that_needs_electricity_is_refused_without_it():
    with LocalGame("SciWorld", simplifications="openDoors,noElectricalAction") as game:
        electrical = next(task for task in range(TASK_COUNT) if "conductivity" in task_of(task).kind)
        with pytest.raises(EnvironmentFailed, match="noElectricalAction removes"):
            game.reset(electrical)
        game.reset(30)


@needs_java
def test_an_unknown_simplification_is_an_error():
    with pytest.raises(BadOption, match="names with commas between them, of teleportAction"):
        server_kind("sciworld").app(simplifications="easy,simple")
