"""ALFWorld's own games: found in its folders, and played by TextWorld as by our engine.

ALFWorld's games are a download, so the tests play games of their format that are written here.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import httpx
import pytest

from agentgym_gym import AgentGymEnv
from agentgym_gym.envs.alfworld import ALFWORLD
from agentgym_gym.errors import BadOption, MissingExtra
from agentgym_gym.local_servers import server_kind
from agentgym_servers.alfworld._tasks import task_of
from agentgym_servers.alfworld._textworld import games_of
from alfworld_facts import games_below
from household_games import write_games
from local_game import LocalGame
from process_tree import alive, descendants

HAS_TEXTWORLD = all(importlib.util.find_spec(name) for name in ("textworld", "fast_downward"))
needs_textworld = pytest.mark.skipif(
    not HAS_TEXTWORLD, reason="textworld[pddl] is not installed: the extra servers-alfworld"
)


TYPES = (
    "pick_and_place_simple",
    "look_at_obj_in_light",
    "pick_clean_then_place_in_recep",
    "pick_heat_then_place_in_recep",
    "pick_cool_then_place_in_recep",
    "pick_two_obj_and_place",
)


def empty_game(folder: Path, name: str, text: str = "{}") -> None:
    (folder / name).mkdir(parents=True)
    (folder / name / "game.tw-pddl").write_text(text)


def test_games_have_the_ids_of_their_splits(tmp_path):
    data = tmp_path / "json_2.1.1"
    for split in ("train", "valid_seen", "valid_unseen"):
        for number in (1, 0, 2):
            empty_game(data / split, f"pick-Mug-{number}/trial_T")
    empty_game(data / "train", "pick_and_place_with_movable_recep-Mug/trial_T")
    empty_game(data / "train", "pick-AppleSliced/trial_T")
    empty_game(data / "train", "pick-Pan/trial_T", '{"solvable": false}')
    (data / "train" / "pick-Pot" / "trial_T").mkdir(parents=True)  # without a game
    games = games_of(tmp_path)
    assert games == games_of(data)
    found = {task_id: str(path.relative_to(data).parent) for task_id, path in games.items()}
    assert found == {
        **{start + n: f"train/pick-Mug-{n}/trial_T" for start in (0, 10_000) for n in range(3)},
        **{id_: f"valid_seen/pick-Mug-{n}/trial_T" for n in range(3) for id_ in (2420 + 2 * n, 20_000 + n)},
        **{id_: f"valid_unseen/pick-Mug-{n}/trial_T" for n in range(3) for id_ in (2421 + 2 * n, 30_000 + n)},
    }


def test_the_sizes_of_the_splits_are_alfworlds_own():
    sizes = {name: len(ALFWORLD.split(name)) for name in ("official_train", "valid_seen", "valid_unseen")}
    assert sizes == {"official_train": 3553, "valid_seen": 140, "valid_unseen": 134}
    assert ALFWORLD.has_task(30_133)
    assert not ALFWORLD.has_task(30_134)


def test_the_counting_tool_reads_games_in_alfworlds_format(tmp_path):
    """A game in ALFWorld's format has the same things with the same numbers, at the same places."""
    ids = ALFWORLD.split("test")[::9]
    write_games(tmp_path, ids)
    found = {(game.room, game.task().house, game.task().start) for game in games_below(tmp_path)}
    tasks = [task_of(0, task_id) for task_id in ids]
    assert found == {(task.room.number, task.house, task.start) for task in tasks}
    assert any(task.house.fixed for task in tasks)


def test_a_folder_without_games_is_refused(tmp_path):
    with pytest.raises(BadOption, match=r"no game\.tw-pddl"):
        games_of(tmp_path)


def test_without_textworld_the_extra_is_named(tmp_path, monkeypatch):
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "textworld" else find(name))
    with pytest.raises(MissingExtra, match=r"servers-alfworld"):
        server_kind("alfworld").app(data=tmp_path)


@pytest.fixture(scope="module")
def own():
    """The generated world, in this process."""
    with LocalGame("ALFWorld") as game:
        game.reset(0)
        yield game


def reset_own(game, task):
    return game.post("/reset", id=game.id, game=task, world_type="Text").json()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("alfworld")


@pytest.fixture(scope="module")
def official(own, folder):
    """Write the first test task of each type into the folder; return its id there by its own id."""
    first = {}
    for task in ALFWORLD.split("test"):
        first.setdefault(reset_own(own, task)["task_type"].partition("-")[0], task)
    return write_games(folder, [first[name] for name in TYPES])


@pytest.fixture(scope="module")
def server(folder, official):
    """The process of a server with the games of a folder, and its URL."""
    command = [
        sys.executable,
        "-m",
        "agentgym_servers",
        "alfworld",
        "--data",
        str(folder),
        "--exit-with-parent",
    ]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        line = process.stdout.readline()
        yield process, line.rpartition(" ")[2].strip()
        process.stdin.close()
        process.wait(timeout=60)


@pytest.fixture(scope="module")
def client(server):
    with httpx.Client(base_url=server[1], timeout=300) as client:
        yield client


def started(client, task_id):
    env_id = client.post("/create").json()["id"]
    reply = client.post("/reset", json={"id": env_id, "game": task_id, "world_type": "Text"}).json()
    return env_id, reply


def play(client, env_id, action):
    return client.post("/step", json={"id": env_id, "action": action}).json()


def words(text):
    """Return the parts of an observation in alphabetical order: TextWorld lists things in another order."""
    return sorted(text.replace(", and ", ", ").rstrip(".").split(", "))


def structure(text):
    """Return an observation with its lists of things in alphabetical order."""
    head, see, rest = text.partition("you see ")
    listed, dot, end = rest.partition(".")
    return head, see, words(listed), dot, end


@needs_textworld
@pytest.mark.slow
@pytest.mark.parametrize("index", range(len(TYPES)))
def test_textworld_and_our_engine_play_the_same_game(client, own, official, index):
    """The same admissible commands, observations of the same structure, and the same end."""
    task = list(official)[index]
    solution = list(map(str, own.win(task)[0]))
    env_id, reply = started(client, official[task])
    ours = reset_own(own, task)
    assert reply["task_type"] == ours["task_type"]
    assert structure(reply["observation"]) == structure(ours["observation"])
    assert reply["available_actions"] == ours["available_actions"]
    draw = random.Random(index)  # noqa: S311 - nothing secret
    drawn, done = 0, False
    while not done:
        # Between the actions of the solution, some that change nothing which it needs, and one unknown.
        others = [text for text in ours["available_actions"] if text.split()[0] in HARMLESS] + ["dance"]
        aside = drawn < 8 and draw.random() < 0.4
        action = draw.choice(others) if aside else solution.pop(0)
        drawn += aside
        theirs, ours = play(client, env_id, action), own.post("/step", id=own.id, action=action).json()
        if action != "help":
            assert structure(theirs["observation"]) == structure(ours["observation"]), action
        assert (theirs["reward"], theirs["done"]) == (ours["reward"], ours["done"]), action
        assert theirs["available_actions"] == ours["available_actions"], action
        done = ours["done"]
    assert ours["reward"] == 1
    assert "has finished" in play(client, env_id, "look")["error"]


HARMLESS = {"look", "inventory", "help", "examine"}


@needs_textworld
@pytest.mark.slow
def test_our_environment_plays_the_folder_by_its_split(server, own, official):
    env = AgentGymEnv("ALFWorld", server=server[1], split="valid_unseen", timeout=300)
    with contextlib.closing(env):
        _, info = env.reset(options={"task_id": 30_000})
        assert info["goal"] == own.reset(next(iter(official))).goal
        assert info["served_by"].endswith("(ALFWorld, data)")
        assert env.step("Thought:\nI look.\n\nAction:\nlook")[0].startswith(
            "You are in the middle of a room."
        )


@needs_textworld
@pytest.mark.slow
def test_a_game_ends_after_fifty_actions_and_unknown_games_are_refused(client):
    env_id, _ = started(client, 2421)
    replies = [play(client, env_id, "dance") for _ in range(50)]
    assert [reply["done"] for reply in replies] == [False] * 49 + [True]
    for task_id in (-1, 5, 30_006):
        reply = client.post("/reset", json={"id": env_id, "game": task_id, "world_type": "Text"}).json()
        assert reply == {"error": "There is no such game in the folder of this server."}


@needs_textworld
@pytest.mark.slow
def test_a_killed_process_is_replaced_at_the_next_reset(server, client):
    env_id, start = started(client, 2421)
    before = alive(descendants(server[0].pid))
    assert before
    for pid in before:
        os.kill(pid, signal.SIGKILL)
    assert play(client, env_id, "look") == {
        "error": "The process that played this game has ended: reset the environment."
    }
    again = client.post("/reset", json={"id": env_id, "game": 2421, "world_type": "Text"}).json()
    assert {**again, "id": 0} == {**start, "id": 0}
    assert not before & alive(descendants(server[0].pid))


@needs_textworld
@pytest.mark.slow
def test_no_process_outlives_a_killed_server(folder, official):
    command = [sys.executable, "-m", "agentgym_servers", "alfworld", "--data", str(folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        url = process.stdout.readline().rpartition(" ")[2].strip()
        with httpx.Client(base_url=url, timeout=300) as client:
            started(client, 2421)
        left = descendants(process.pid)
        process.kill()
    assert left
    for _ in range(600):
        if not alive(left):
            return
        time.sleep(0.1)
    pytest.fail("a process outlives the server")


@needs_textworld
@pytest.mark.slow
def test_environments_play_their_own_games_at_once(client, own, official):
    solutions = [list(map(str, own.win(task)[0])) for task in official]
    games = [
        (solution, started(client, theirs)[0])
        for theirs, solution in zip(official.values(), solutions, strict=True)
        for _ in range(2)
    ]
    won = set()
    for turn in range(max(map(len, solutions))):
        for solution, env_id in games:
            if turn < len(solution) and play(client, env_id, solution[turn])["reward"] == 1:
                won.add(env_id)
    assert len(won) == len(games)
