"""`agentgym validate`."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace

import gymnasium
import pytest

import inside
from agentgym_gym.catalogue import find, register
from agentgym_gym.local_servers import LocalServer
from bird_folder import FIRST_TASK, write_bird


@pytest.fixture(scope="module")
def maze_url():
    server = LocalServer("maze")
    yield server.start()
    server.stop()


@pytest.fixture(scope="module")
def another_babyai_url():
    command = ["agentgym_gym", "serve", "babyai", "--seed", "3", "--port", "0"]
    process = subprocess.Popen([sys.executable, "-m", *command], stdout=subprocess.PIPE, text=True)
    yield process.stdout.readline().split()[-1]  # it is up when it prints its URL
    process.terminate()
    process.communicate()


@pytest.fixture(scope="module")
def babyai_url():
    server = LocalServer("babyai")
    yield server.start()
    server.stop()


@pytest.mark.slow
def test_all_tasks_are_the_tasks_of_all_splits(run, maze_url, monkeypatch):
    inside.forget_registrations(monkeypatch)
    register(replace(find("Maze"), name="Mazes", splits={"train": range(20), "test": range(20, 25)}))
    result = run("validate", "Mazes", "--tasks", "all", "--server", maze_url, "--json")
    assert json.loads(result.stdout)["gold"]["played"] == 25


def test_every_task_of_maze_can_be_won(run, maze_url):
    result = run("validate", "Maze", "--server", maze_url, "--json")
    assert (result.exit_code, result.stderr) == (0, "")
    found = json.loads(result.stdout)
    assert (found["passed"], found["gold_agent"]) == (True, "oracle")
    assert found["gold"] == {
        "played": 25,
        "won": 25,
        "not_won": 0,
        "undecided": 0,
        "not_judged": 0,
        "faulted": 0,
    }
    assert found["null"] == {
        "played": 25,
        "won": 0,
        "not_won": 25,
        "undecided": 0,
        "not_judged": 0,
        "faulted": 0,
    }


def test_unsolvable_tasks_are_reported(run, maze_url, tmp_path):
    arguments = ("validate", "Maze", "--server", maze_url, "--max-turns", 6, "--out", tmp_path / "v")
    result = run(*arguments, "--tasks", "0:12")
    assert result.exit_code == 1
    assert "The known solution does not win: tasks " in result.stdout
    assert ", oracle, 6 turns: score 0, truncated\n" in result.stdout
    assert result.stdout.endswith(f"Written to {tmp_path / 'v'}.\n")
    again = run(*arguments, "--tasks", "0:12", "--resume")
    assert (again.exit_code, again.stdout) == (1, result.stdout)
    assert "is not overwritten" in run(*arguments, "--tasks", "0:12").stderr


@pytest.mark.slow
def test_tasks_that_the_server_cannot_judge_are_listed_with_the_reason(run, tmp_path):
    folder = write_bird(tmp_path, "SELECT count(*) FROM animal", "SELECT * FROM beast", "SELECT nothing FROM")
    server = LocalServer("sqlgym", arguments=("--data", str(folder)))
    try:
        tasks = f"{FIRST_TASK}:{FIRST_TASK + 3}"
        arguments = ("validate", "SQLGym", "--server", server.start(), "--tasks", tasks)
        result, as_json = run(*arguments), run(*arguments, "--json")
    finally:
        server.stop()
    assert (result.exit_code, as_json.exit_code) == (1, 1)
    assert f"\nCannot be judged: tasks {FIRST_TASK + 1}:{FIRST_TASK + 3}.\n" in result.stdout
    assert f"task {FIRST_TASK + 1} cannot be judged: its reference statement fails" in result.stdout
    assert "plays files of yours (--data)" in result.stdout
    found = json.loads(as_json.stdout)
    assert (found["faulted"], found["not_won"], found["passed"]) == ([], [], False)
    assert [each["task_id"] for each in found["not_judged"]] == [FIRST_TASK + 1, FIRST_TASK + 2]
    assert found["null"]["not_judged"] == 2
    assert "no such table: beast" in found["not_judged"][0]["fault"]["message"]


class Door(gymnasium.Env):
    """Another library's environment: the door of an even seed is open."""

    observation_space = action_space = gymnasium.spaces.Text(5)

    def reset(self, *, seed=None, options=None):
        self.opened = seed % 2 == 0
        return "A \x1b[31mdoor.", {}

    def step(self, action):
        return "Oh.", float(self.opened), True, False, {"success": self.opened}


@pytest.fixture
def door():
    gymnasium.register("doors/Door-v0", Door)
    yield "doors/Door-v0"
    del gymnasium.registry["doors/Door-v0"]


def test_tasks_that_the_page_names_as_impossible_are_counted_apart(run, textcraft_url):
    asked = ("validate", "TextCraft", "--server", textcraft_url, "--tasks", "2,473")
    result = run(*asked)
    assert result.exit_code == 0
    assert "\n1 impossible task, not won: 473.\n" in result.stdout
    assert "\nThe known solution wins all others. Doing nothing wins no task.\n" in result.stdout
    more = run(*asked, "--max-turns", "30")
    assert more.exit_code == 0
    assert "impossible" not in more.stdout


@pytest.mark.slow
def test_in_another_world_other_tasks_are_impossible(run, another_babyai_url):
    result = run("validate", "BabyAI", "--server", another_babyai_url, "--tasks", "25,246", "--json")
    assert result.exit_code == 1
    found = json.loads(result.stdout)
    assert found["impossible"] == []
    assert [each["task_id"] for each in found["not_won"]] == [25]


def test_an_environment_without_a_known_solution_is_reported(run, door):
    result = run("validate", door, "--tasks", "1,3")
    assert result.exit_code == 0
    assert "doors/Door-v0 has no oracle, so its tasks were played only with empty replies" in result.stdout
    assert "There are oracles of TextCraft, Maze, Wordle" in " ".join(result.stdout.split())
    assert "\nDoing nothing wins no task.\n" in result.stdout
    result = run("validate", door, "--tasks", "0:5")
    assert result.exit_code == 1
    assert (
        "Won by doing nothing: tasks 0,2,4.\n  task 0, null, 1 turn: score 1, terminated\n" in result.stdout
    )


def test_a_kept_run_may_be_the_known_solution_of_some_tasks(run, door, tmp_path):
    kept = tmp_path / "kept"
    assert run("eval", door, "--agent", "random", "--tasks", "0:2,5", "--out", kept).exit_code == 0
    result = run("validate", door, "--tasks", "0:4", "--gold", f"replay:{kept}")
    assert result.exit_code == 1
    assert "No known solution: tasks 2:4.\n" in result.stdout
    assert "has no complete episode of doors/Door-v0 with task 2\n" in result.stdout
    assert "The known solution does not win: tasks 1.\n" in result.stdout


def test_an_agent_of_ones_own_may_have_the_solutions(run, door):
    result = run("validate", door, "--tasks", "1:2", "--gold", "agentgym_gym.evaluate:NullAgent", "--json")
    assert result.exit_code == 1
    found = json.loads(result.stdout)
    assert (found["gold_agent"], [each["task_id"] for each in found["not_won"]]) == ("null", [1])


def test_wrong_options_are_reported(run, maze_url, textcraft_url, serverless):
    for arguments, said in (
        (("Maze", "--resume"), "--resume needs the folder of the earlier validation: give --out"),
        (("Maze", "--gold", "random"), "--gold random has no solutions"),
        (("Maze", "--server", textcraft_url), "no server of Maze is available"),
        (
            (serverless, "--gold", "oracle", "--server", maze_url),
            f"there is no oracle that plays {serverless}",
        ),
    ):
        result = run("validate", *arguments)
        assert (result.exit_code, said in result.stderr) == (2, True), result.stderr


@pytest.mark.slow
@pytest.mark.parametrize("command", [["validate"], ["eval", "--agent", "oracle"]])
def test_servers_of_different_worlds_are_not_averaged(
    run, babyai_url, another_babyai_url, maze_url, unreachable_url, tmp_path, command
):
    urls = f"{babyai_url},{another_babyai_url}"
    options = ("--server", urls, "--tasks", "0:2", "--out", tmp_path / "run")
    result = run(command[0], "BabyAI", *command[1:], *options)
    assert (result.exit_code, result.stdout) == (2, "")
    assert "the servers have different worlds" in result.stderr
    assert f"{another_babyai_url} has local world 3, seed 3; evaluate each in a separate run" in result.stderr
    assert not (tmp_path / "run").exists()
    gone = f"{maze_url},{unreachable_url}"  # the world of a server that is away is unknown, and not another
    result = run(
        "eval", "Maze", "--agent", "oracle", "--server", gone, "--tasks", "0:2", "--out", tmp_path / "m"
    )
    assert result.stdout.startswith("Maze-v0 (local world 3) by oracle\n")
