"""Which environment and which tasks a command uses: names, ids, modules, files of item ids."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from http.server import ThreadingHTTPServer
from pathlib import Path

import gymnasium
import pytest
from pyarrow import parquet

import agentgym_gym
import inside
from agentgym_gym import catalogue
from agentgym_gym.errors import BadOption

EXAMPLES = Path(agentgym_gym.__file__).resolve().parents[1] / "examples"
LIBRARY = """
import gymnasium

class Echo(gymnasium.Env):
    observation_space = action_space = gymnasium.spaces.Text(9)

    def __init__(self, turns=2, says=None, breaks=False):
        self.turns, self.says, self.breaks = turns, says, breaks

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.left, self.seed = self.turns, seed
        return self.says or f"Say {seed}.", {"goal": {"seed": seed}}

    def step(self, action):
        self.left -= 1
        if self.breaks:
            raise RuntimeError("it broke")
        told = {"success": self.seed % 2 == 0} if self.left == 0 else {}
        return "No.", 0.25, self.left == 0, False, told

gymnasium.register("mine/Echo-v3", Echo)
gymnasium.register("mine/Maze-v0", Echo)
"""
OTHERS = "other_library:mine/Echo-v3"


@pytest.fixture(autouse=True)
def _as_before(monkeypatch, tmp_path):
    """Modules are imported from here; what they register is gone afterwards."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    inside.forget_registrations(monkeypatch)
    for mapping in (sys.modules, gymnasium.registry):
        for name in [*mapping]:
            monkeypatch.setitem(mapping, name, mapping[name])
    before = {"modules": set(sys.modules), "ids": set(gymnasium.registry)}
    (tmp_path / "other_library.py").write_text(LIBRARY)
    (tmp_path / "own_environment.py").write_text((EXAMPLES / "own_environment.py").read_text())
    yield
    for name in ("other_library", "own_environment"):
        sys.modules.pop(name, None)
    for name in set(gymnasium.registry) - before["ids"]:
        del gymnasium.registry[name]


@pytest.fixture
def registered(run):
    """The module of the example, which a command imported."""
    assert run("envs", "--env", "own_environment:own/Guessing-v0").exit_code == 0
    return sys.modules["own_environment"]


@pytest.fixture
def guessing(registered):
    """URL of the server of the example."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), registered.GuessingServer)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
    thread.join()


def episodes(folder):
    lines = Path(folder, "episodes.jsonl").read_text("utf-8").splitlines()
    return sorted(map(json.loads, lines), key=lambda episode: episode["task_id"])


def rows(file):
    return parquet.read_table(file).to_pylist()


def kwargs(row):
    return row["extra_info"]["interaction_kwargs"]


# Environments


@pytest.mark.parametrize("name", ["own/Guessing-v0", pytest.param("guessing", marks=pytest.mark.slow)])
def test_an_environment_of_ones_own_in_every_command(run, guessing, name):
    own = f"own_environment:{name}"
    done = run("eval", own, "--agent", "random", "--tasks", "3,50", "--server", guessing, "--out", "eval")
    assert done.exit_code == 0, done.stderr
    assert [(e["env_id"], e["task_id"], e["fault"]) for e in episodes("eval")] == [
        ("own/Guessing-v0", 3, None),
        ("own/Guessing-v0", 50, None),
    ]
    played = run("play", own, "--task", 7, "--server", guessing, input="guess 5\nguess 7\n")
    assert "Higher." in played.stdout
    assert played.stdout.endswith("Score 1 after 2 turns: solved.\n")
    written = run("data", "rl", own, "--tasks", "1:11", "--val", 2, "--server", guessing, "--out", "rl")
    assert written.exit_code == 0, written.stderr
    assert {kwargs(row)["env_id"] for row in rows("rl/train.parquet")} == {"own_environment:own/Guessing-v0"}
    begun = run("verl", "init", "--env", own, "--server", guessing, "--out", "recipe")
    assert begun.exit_code == 0, begun.stderr
    row = rows("recipe/data/train.parquet")[0]
    assert kwargs(row)["env_id"] == "own_environment:own/Guessing-v0"
    assert "task_id" in kwargs(row)["reset_options"]
    found = json.loads(run("verl", "check", "recipe", "--json").stdout)["findings"]
    (said,) = (each for each in found if each["check"] == "environment")
    assert said["status"] == "ok", said


@pytest.mark.slow  # a program
def test_a_module_in_the_working_directory_is_found_by_check_and_by_the_script(run, tmp_path):
    assert run("verl", "init", "--env", OTHERS, "--out", "recipe").exit_code == 0
    sys.modules.pop("other_library")
    sys.path.remove(str(tmp_path))  # as in a separate program
    for name in ("mine/Echo-v3", "mine/Maze-v0"):
        del gymnasium.registry[name]
    found = json.loads(run("verl", "check", "recipe", "--json").stdout)["findings"]
    (said,) = (each for each in found if each["check"] == "environment")
    assert said["status"] == "ok", said
    python = tmp_path / "python"
    python.write_text(
        f"#!/bin/sh\nexec {sys.executable} -c 'import other_library; print(other_library.Echo)'\n"
    )
    python.chmod(0o755)
    ran = subprocess.run(
        ["bash", "recipe/run.sh"],  # noqa: S607
        env={**os.environ, "PYTHON": str(python)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    assert "other_library.Echo" in ran.stdout


def test_check_reports_a_missing_module(run, tmp_path, monkeypatch):
    assert run("verl", "init", "--env", OTHERS, "--out", "recipe").exit_code == 0
    sys.modules.pop("other_library")
    sys.path.remove(str(tmp_path))
    del gymnasium.registry["mine/Echo-v3"]
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    checked = run("verl", "check", tmp_path / "recipe", "--json")
    assert checked.exit_code == 1
    (said,) = (f for f in json.loads(checked.stdout)["findings"] if f["check"] == "environment")
    assert (
        "No module named 'other_library'; install it, or run the command in the folder where it lies"
        in said["text"]
    )
    none = run("verl", "check", "recipe")
    assert none.exit_code == 2
    assert none.stderr == "error: recipe is not a folder: write one with agentgym verl init or sft\n"


def test_commands_about_servers_find_ones_own(run, guessing):
    own = ["--env", "own_environment:own/Guessing-v0"]
    looked = json.loads(run("doctor", guessing, *own, "--json").stdout)
    assert (looked["environments"], looked["ok"]) == (["own/Guessing-v0"], True)
    assert "serves  own/Guessing-v0" in run("leases", guessing, *own).stdout
    listed = json.loads(run("envs", *own, "--json").stdout)
    assert [each["id"] for each in listed if each["id"].startswith("own/")] == ["own/Guessing-v0"]
    for command in (["doctor"], ["envs"], ["leases", guessing]):
        for name, told in (
            (OTHERS, "mine/Echo-v3' should be an environment that its module adds"),
            ("nowhere:a/B", "'nowhere'"),
        ):
            refused = run(*command, "--env", name)
            assert refused.exit_code == 2
            assert told in refused.stderr
    serves = run("serve", OTHERS)
    assert serves.exit_code == 2
    assert "mine/Echo-v3 has no local server" in serves.stderr


def test_registration_forces_no_namespace(registered):
    assert "own/Guessing-v0" in gymnasium.registry
    assert "agentgym/Guessing-v0" not in gymnasium.registry
    own = registered.GUESSING
    later = catalogue.replace(own, version=2, aliases=("Number",))
    assert later.ids == ("own/Guessing-v2", "own/Number-v2")
    taken = catalogue.replace(own, name="maze")
    with pytest.raises(BadOption, match="agentgym/Maze-v0 has the same name"):
        catalogue.register(taken)


def test_another_library_s_environment_is_evaluated(run):
    options = ["--env-kwargs", '{"turns": 3}', "--tasks", "0:4", "--out", "out"]
    done = run("eval", OTHERS, "--agent", "random", *options)
    assert done.exit_code == 0, done.stderr
    played = episodes("out")
    assert [(e["env_id"], e["task_id"], e["messages"][0]["content"]) for e in played] == [
        ("mine/Echo-v3", seed, f"Say {seed}.") for seed in range(4)
    ]
    assert {(e["score"], e["turns"], e["goal"], e["truncated"]) for e in played} == {(0.75, 3, None, False)}
    assert [e["success"] for e in played] == [True, False, True, False]
    summary = json.loads(Path("out/summary.json").read_text())
    assert (summary["success_rate"], summary["mean_score"]) == (0.5, 0.75)
    assert summary["run"]["options"] == {"max_turns": None, "turns": 3}
    again = run("eval", OTHERS, "--agent", "replay:out/episodes.jsonl", *options[:-1], "again")
    assert again.exit_code == 0, again.stderr
    assert [e["messages"] for e in episodes("again")] == [e["messages"] for e in played]


def test_another_library_s_environment_is_played(run):
    played = run("play", OTHERS, "--task", 4, input="hello\nhello\n")
    assert played.exit_code == 0, played.stderr
    assert "Task 4:\n\nSay 4." in played.stdout
    assert played.stdout.endswith("No.\n\nScore 0.5 after 2 turns: solved.\n")
    assert run("play", OTHERS, "--task", 4, input="hello\n").stdout.endswith("Score 0.25 after 1 turns.\n")


@pytest.mark.parametrize("limit", [[], ["--max-turns", "7"]])
def test_an_episode_that_never_ends_is_ended(run, limit):
    done = run(
        "eval",
        OTHERS,
        "--agent",
        "random",
        "--tasks",
        1,
        "--out",
        "o",
        "--env-kwargs",
        '{"turns": -1}',
        *limit,
    )
    assert done.exit_code == 0
    (played,) = episodes("o")
    assert (played["turns"], played["truncated"]) == (7 if limit else 100, True)


def test_an_error_of_another_librarys_environment_is_a_fault(run):
    done = run(
        "eval", OTHERS, "--agent", "random", "--tasks", "0:2", "--out", "o", "--env-kwargs", '{"breaks": 1}'
    )
    assert done.exit_code == 1
    assert "2 ended by RuntimeError; not scored." in done.stdout
    assert episodes("o")[0]["fault"] == {"kind": "RuntimeError", "message": "it broke"}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["Nope"], "there is no environment 'Nope'"),
        (["mine/Nope-v0"], "needs its module, as in my_package:my/Env-v0"),
        (["nowhere:mine/Echo-v3"], "cannot import 'nowhere'"),
        (
            ["broken:mine/Echo-v3"],
            "'broken:mine/Echo-v3': ZeroDivisionError",
        ),
        (
            ["other_library:mine/Nope-v3"],
            "other_library registers mine/Echo-v3, mine/Maze",
        ),
        (["agentgym_gym:Nope"], "there are: TextCraft, Maze"),
        (["no.where:mine/Echo-v3"], "the folder where it lies"),
        (["./other_library.py:mine/Echo-v3"], "without .py"),
        (["other_library.py:mine/Echo-v3"], "without .py"),
        (["..:mine/Echo-v3"], "as an import does"),
        (["other library:mine/Echo-v3"], "as an import does"),
        (["ends:mine/Echo-v3"], "'ends:mine/Echo-v3': SystemExit: 3"),
        ([OTHERS, "--server", "http://a:1"], "--server: only for AgentGym's"),
        ([OTHERS, "--env-kwargs", '{"size": 1}'], "cannot create mine/Echo-v3: WrongArguments"),
        ([OTHERS, "--env-kwargs", '{"id": 1}'], "cannot create mine/Echo-v3: TypeError"),
        (["Maze", "--env-kwargs", '{"id": 1}'], "Maze has no option id"),
        (["Maze", "--env-kwargs", '{"walls": 1}'], "Maze has no option walls"),
        (
            ["Maze", "--parser", "agentgym", "--env-kwargs", '{"parser": "default"}'],
            "--env-kwargs gives parser",
        ),
        ([OTHERS, "--env-kwargs", "[]"], "--env-kwargs='[]'"),
        (
            [OTHERS, "--env-kwargs", '{"says": 5}'],
            "its observation is of type int",
        ),
        ([OTHERS, "--tasks", "5:"], "has no end, and mine/Echo-v3 has seeds"),
        (
            [OTHERS, "--tasks", "ids.json"],
            "mine/Echo-v3 has no numbered tasks",
        ),
        ([OTHERS, "--agent", "oracle"], "there is no oracle"),
        (["CartPole-v1"], "CartPole-v1 is not a text environment"),
    ],
)
def test_unknown_names_are_an_error(run, arguments, told):
    Path("broken.py").write_text("1 / 0")
    Path("ends.py").write_text("raise SystemExit(3)")
    Path("ids.json").write_text('[{"item_id": "maze_1"}]')
    usual = {"--agent": "random", "--tasks": "0:2", "--out": "out"}
    left = [word for option, value in usual.items() if option not in arguments for word in (option, value)]
    result = run("eval", *arguments, *left)
    assert result.exit_code == 2
    assert told in result.stderr


@pytest.mark.slow
@pytest.mark.parametrize("name", ["Wordle-v0", "Wordle", "maze", "agentgym/Maze-v0", "BIRD", "CartPole-v1"])
@pytest.mark.parametrize("module", ["other_library", "own_environment", "json"])
def test_an_environment_of_another_module_is_refused_by_every_command(run, module, name):
    """A module that registers no such environment is never an alias of AgentGym or gymnasium."""
    registered = {
        "other_library": "other_library registers mine/Echo-v3, mine/Maze-v0; use one of these ids",
        "own_environment": "own_environment registers own/Guessing-v0; use one of these ids",
        "json": "json registers no environment",
    }
    for command in (
        ["eval", f"{module}:{name}", "--agent", "random", "--tasks", "0:2", "--out", "out"],
        ["verl", "init", "--env", f"{module}:{name}", "--out", "out"],
        ["data", "rl", f"{module}:{name}", "--out", "out"],
        ["play", f"{module}:{name}", "--task", "1"],
    ):
        result = run(*command)
        assert result.exit_code == 2
        assert f"'{module}:{name}' is not registered: {registered[module]}" in result.stderr
        assert result.stdout == ""
        assert not Path("out").exists()


def test_a_module_that_fails_registers_nothing(run):
    """Also where it had registered an environment with the catalogue before it failed."""
    Path("own_environment.py").write_text(Path("own_environment.py").read_text() + "\n1 / 0\n")
    for name in ("own/Guessing-v0", "guessing"):
        result = run("parse", f"own_environment:{name}", input="guess 5\n")
        assert result.exit_code == 2
        assert "cannot import 'own_environment'" in result.stderr


def test_an_environment_that_replaces_agentgym_s_is_of_its_module(run):
    Path("other_library.py").write_text(LIBRARY.replace("mine/Maze-v0", "agentgym/Maze-v0"))
    with pytest.warns(UserWarning, match="Overriding"):
        assert named(run, "other_library:agentgym/Maze-v0") == "other_library:agentgym/Maze-v0"
    done = run("eval", "other_library:agentgym/Maze-v0", "--agent", "random", "--tasks", "3", "--out", "out")
    assert done.exit_code == 0, done.stderr
    assert [(each["turns"], each["score"]) for each in episodes("out")] == [(2, 0.5)]


def test_ids_may_contain_colons(run):
    Path("other_library.py").write_text(LIBRARY.replace("mine/Maze-v0", "game:Guess-v0"))
    for out, name in enumerate(("other_library:game:Guess-v0", "other_library:game:Guess", "game:Guess-v0")):
        done = run("eval", name, "--agent", "random", "--tasks", "0:2", "--out", out)
        assert done.exit_code == 0, done.stderr
        assert [(e["env_id"], e["turns"]) for e in episodes(str(out))] == [("game:Guess-v0", 2)] * 2
    assert named(run, "other_library:game:Guess") == "other_library:game:Guess-v0"


def test_rows_and_recipes_of_ids_with_colons(run):
    Path("other_library.py").write_text(LIBRARY.replace("mine/Maze-v0", "game:Guess-v0"))
    name = "other_library:game:Guess-v0"
    assert run("data", "rl", name, "--tasks", "0:4", "--out", "rl").exit_code == 0
    done = run("verl", "init", "--env", name, "--tasks", "0:20", "--val", 4, "--out", "recipe")
    assert done.exit_code == 0, done.stderr
    for file in ("rl/train.parquet", "recipe/data/train.parquet"):
        found = {(row["data_source"], kwargs(row)["env_id"]) for row in rows(file)}
        assert found == {("game:Guess-v0", name)}
    several = ("--env", name, "--env", OTHERS, "--tasks", f"{name}=0:20", "--val", "game:Guess-v0=4")
    done = run("verl", "init", *several, "--out", "several")
    assert done.exit_code == 0, done.stderr
    assert {row["data_source"] for row in rows("several/data/val.parquet")} == {
        "game:Guess-v0",
        "mine/Echo-v3",
    }


def named(run, name):
    """Return the environment that a command plays, with its module."""
    done = run("data", "rl", name, "--tasks", "0:2", "--val", 0, "--out", "named", "--force")
    assert done.exit_code == 0, done.stderr
    return kwargs(rows("named/train.parquet")[0])["env_id"]


def test_a_name_like_agentgym_s_is_not_taken_for_it(run):
    assert named(run, "other_library:mine/Maze-v0") == "other_library:mine/Maze-v0"
    assert named(run, "other_library:mine/Echo") == OTHERS
    for name in ("maze", "agentgym/Maze-v0", "agentgym_gym:agentgym/Maze-v0", "Maze-v0", "agentgym/maze"):
        assert named(run, name) == "agentgym_gym:agentgym/Maze-v0"
    assert "other/Maze-v0" in run("data", "rl", "other/Maze-v0", "--out", "none").stderr


# Rows for training


def test_rows_of_another_library_s_environment(run):
    options = ["--tasks", "0:10", "--val", 2, "--env-kwargs", '{"turns": 3}', "--out", "out"]
    done = run("data", "rl", OTHERS, *options, "--json")
    assert done.exit_code == 0, done.stderr
    assert json.loads(done.stdout)["rows"] == {"train": 8, "val": 2}
    train, val = rows("out/train.parquet"), rows("out/val.parquet")
    assert sorted(kwargs(row)["seed"] for row in train + val) == list(range(10))
    assert [row["extra_info"]["index"] for row in train] == list(range(8))
    assert {(row["data_source"], kwargs(row)["env_id"], kwargs(row)["env_kwargs"]) for row in train} == {
        ("mine/Echo-v3", OTHERS, '{"turns": 3}')
    }


def test_rows_of_several_libraries(run):
    done = run(
        "data",
        "rl",
        "Maze",
        OTHERS,
        "--tasks",
        "0:5",
        "--val",
        0,
        "--env-kwargs",
        'mine/Echo-v3={"turns": 3}',
        "--out",
        "o",
    )
    assert done.exit_code == 0, done.stderr
    found = {row["data_source"]: kwargs(row) for row in rows("o/train.parquet")}
    assert found["mine/Echo-v3"]["env_kwargs"] == '{"turns": 3}'
    assert found["agentgym/Maze-v0"]["seed"] is None
    assert "turns" not in json.loads(found["agentgym/Maze-v0"]["env_kwargs"])
    none = run("data", "rl", OTHERS, "--parser", "agentgym", "--out", "p")
    assert none.exit_code == 2
    assert "--parser: only for AgentGym's" in none.stderr
    twice = run("data", "rl", "Maze", "--max-turns", 3, "--env-kwargs", '{"max_turns": 4}', "--out", "p")
    assert "--env-kwargs gives max_turns" in twice.stderr
    mixed = run("data", "rl", OTHERS, "Maze", "--server", "mine/Echo-v3=http://a:1", "--out", "p")
    assert mixed.exit_code == 2
    assert "--server: only for AgentGym's" in mixed.stderr


# Tasks


def save(name, *item_ids):
    Path(name).write_text(json.dumps([{"item_id": each} for each in item_ids]))
    return name


def test_tasks_are_read_from_a_file_of_item_ids(run, textcraft_url):
    file = save("eval.json", "textcraft_7", "textcraft_3", "textcraft_7")
    done = run(
        "eval", "TextCraft", "--agent", "oracle", "--tasks", file, "--server", textcraft_url, "--out", "e"
    )
    assert done.exit_code == 0, done.stderr
    assert [e["task_id"] for e in episodes("e")] == [3, 7]
    assert run("data", "rl", "TextCraft", "--tasks", file, "--val", 0, "--out", "rl").exit_code == 0
    assert sorted(kwargs(row)["reset_options"] for row in rows("rl/train.parquet")) == [
        '{"task_id": 3}',
        '{"task_id": 7}',
    ]
    many = save("many.json", *(f"textcraft_{task}" for task in range(100, 130)))
    options = ["--preset", "test", "--tasks", many]
    assert run("verl", "init", "--env", "TextCraft", *options, "--out", "v").exit_code == 0
    found = rows("v/data/train.parquet") + rows("v/data/val.parquet")
    assert sorted(json.loads(kwargs(row)["reset_options"])["task_id"] for row in found) == [*range(100, 130)]


@pytest.mark.parametrize(
    ("item_ids", "told"),
    [
        (
            ["maze_1", "textcraft_2"],
            "tasks of Maze, such as 1",
        ),
        (["textcraft_999"], "TextCraft has no task 999"),
    ],
)
def test_a_file_of_other_tasks_is_an_error(run, item_ids, told):
    save("ids.json", *item_ids)
    for command in (
        ["eval", "TextCraft", "--agent", "oracle"],
        ["data", "rl", "TextCraft"],
        ["verl", "init", "--env", "TextCraft"],
    ):
        result = run(*command, "--tasks", "ids.json", "--out", "out")
        assert result.exit_code == 2
        assert told in result.stderr
