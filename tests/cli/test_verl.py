"""`agentgym verl`: what init writes, and that check finds each mistake; what verl says is in tests/verl."""

from __future__ import annotations

import dataclasses
import json
import os
import re
import shlex
import sys
from collections import Counter
from pathlib import Path

import gymnasium
import pytest
import yaml
from pyarrow import parquet

import echo_env
import needs
from check_mistakes import config
from command_line import options
from verl_bridge.recipes import ALGORITHMS, PRESETS, RlRecipe, SftRecipe, seeded, write_rows

TEXTCRAFT = "agentgym_gym:agentgym/TextCraft-v0"


@pytest.fixture
def checked(run):
    """Checks a folder; returns its findings that are problems."""

    def check(place):
        found = json.loads(run("verl", "check", place, "--json").stdout)
        return [each for each in found["findings"] if each["status"] == "problem"]

    return check


# init


@pytest.mark.parametrize(
    ("algorithm", "version", "integration"), [("gigpo", "0.9", "agent-loop"), ("ppo", "0.7", "interaction")]
)
def test_init_writes_the_chosen_settings(run, tmp_path, algorithm, version, integration):
    options = ["--algorithm", algorithm, "--preset", "test", "--verl", version, "--integration", integration]
    assert run("verl", "init", "--env", "WebShop", "--out", tmp_path, *options).exit_code == 0
    names = {"config.yaml", "agent_loop.yaml", "run.sh", "README.md", "data"}
    names |= {"interaction.yaml"} if integration == "interaction" else set()
    assert {path.name for path in tmp_path.iterdir()} == names
    config = yaml.safe_load((tmp_path / "config.yaml").read_text())
    assert config["algorithm"]["adv_estimator"] == ALGORITHMS[algorithm]
    assert config["data"]["train_batch_size"] == PRESETS["test"].batch
    if integration == "interaction":
        (entry,) = yaml.safe_load((tmp_path / "interaction.yaml").read_text())["interaction"]
        played = entry["config"]
    else:
        (played,) = yaml.safe_load((tmp_path / "agent_loop.yaml").read_text())
    assert (played["max_turns"], played["env_kwargs"]["max_turns"]) == (25, 25)
    assert played["env_id"] == "agentgym_gym:agentgym/WebShop-v0"


@pytest.mark.parametrize(("command", "recipe"), [("init", RlRecipe), ("sft", SftRecipe)])
def test_the_options_have_the_names_of_the_choices_in_python(command, recipe):
    choices = {f"--{each.name.replace('_', '-')}" for each in dataclasses.fields(recipe)}
    named = {each.names[0] for each in options("verl", command) if each.group in {"Training", "Machine"}}
    assert named - choices <= {"--tools"}
    assert {"--model", "--preset", "--verl", "--gpus", "--offload"} <= named


def test_init_overwrites_nothing_without_force(run, tmp_path):
    options = ["--preset", "test", "--out", tmp_path]
    assert run("verl", "init", "--env", "TextCraft", *options).exit_code == 0
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    result = run("verl", "init", "--env", "WebShop", *options)
    assert result.exit_code == 2
    assert "config.yaml" in result.stderr
    assert "--force" in result.stderr
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before
    assert run("verl", "init", "--env", "WebShop", *options, "--force").exit_code == 0
    assert "WebShop" in (tmp_path / "agent_loop.yaml").read_text()


def test_init_writes_native_tool_calls(run, tmp_path, textcraft_url, checked):
    options = ["--server", textcraft_url, "--tools", "native", "--tasks", "0:20"]
    assert run("verl", "init", "--env", "TextCraft", "--out", tmp_path, *options).exit_code == 0
    (loop,) = yaml.safe_load((tmp_path / "agent_loop.yaml").read_text())
    assert loop["tool_calls"] is True
    assert loop["env_kwargs"]["action_format"] == "tool_calls"
    config = yaml.safe_load((tmp_path / "config.yaml").read_text())
    assert config["data"]["max_prompt_length"] == 4096
    assert config["trainer"]["experiment_name"].endswith("-tools")
    rows = parquet.read_table(tmp_path / "data/train.parquet").to_pylist()
    assert "Call exactly one function" in rows[0]["prompt"][0]["content"]
    assert checked(tmp_path) == []


@pytest.mark.slow  # a server of WebShop is started
def test_init_writes_a_turn_limit_that_grows(run, tmp_path):
    options = ["--turns", "10,20,30", "--turns-every", "50", "--tasks", "500:560"]
    assert run("verl", "init", "--env", "WebShop", "--out", tmp_path, *options).exit_code == 0
    (loop,) = yaml.safe_load((tmp_path / "agent_loop.yaml").read_text())
    assert loop["horizon"] == {"turns": [10, 20, 30], "every": 50}
    assert "max_turns" not in loop
    assert loop["env_kwargs"]["max_turns"] == 30  # the environment's own limit is not lower
    config = yaml.safe_load((tmp_path / "config.yaml").read_text())
    assert config["data"]["max_response_length"] == 14_336 * 30 // 25


def test_init_writes_the_tasks_of_agentgym(run, tmp_path):
    pytest.importorskip("pyarrow", reason=needs.reason("pyarrow"))
    assert run("verl", "init", "--env", "TextCraft", "--preset", "test", "--out", tmp_path).exit_code == 0
    rows = {
        part: parquet.read_table(tmp_path / f"data/{part}.parquet").to_pylist() for part in ("train", "val")
    }
    assert {part: len(those) for part, those in rows.items()} == {"train": 64, "val": 8}
    assert rows["train"][0]["prompt"][0]["content"] == gymnasium.make(TEXTCRAFT).unwrapped.system_prompt


def test_any_text_environment(run, checked, tmp_path, monkeypatch):
    env_id = echo_env.register(monkeypatch)
    result = run("verl", "init", "--env", env_id, "--out", tmp_path, "--tasks", "0:20", "--val", 4)
    assert result.exit_code == 0
    rows = {
        part: parquet.read_table(tmp_path / f"data/{part}.parquet").to_pylist() for part in ("train", "val")
    }
    # verl makes no step of less than a batch.
    assert {part: len(those) for part, those in rows.items()} == {"train": 32, "val": 4}
    assert rows["train"][0]["prompt"] == [{"role": "system", "content": ""}]
    assert checked(tmp_path) == []


@pytest.mark.parametrize("integration", ["agent-loop", pytest.param("interaction", marks=pytest.mark.slow)])
def test_the_yaml_contains_the_isolation(run, tmp_path, integration):
    options = ["--isolate", "process", "--success-at", "1.5", "--tasks", "0:20", "--val", "4"]
    options += ["--verl", "0.7", "--integration", integration]
    env = "nasty_envs:nasty/Nasty-v0"
    result = run("verl", "init", "--env", env, *options, "--out", tmp_path)
    assert result.exit_code == 0, result.stderr
    if integration == "interaction":
        (entry,) = yaml.safe_load((tmp_path / "interaction.yaml").read_text())["interaction"]
        played = entry["config"]
    else:
        (played,) = yaml.safe_load((tmp_path / "agent_loop.yaml").read_text())
    assert (played["env_id"], played["isolate"], played["success_at"]) == (env, "process", 1.5)


def test_the_prompt_is_read_where_the_environment_runs(run, tmp_path):
    env = "nasty_envs:nasty/Somewhere-v0"
    result = run(
        *("verl", "init", "--env", env, "--isolate", "process", "--tasks", "0:20", "--val", 4),
        *("--out", tmp_path),
    )
    assert result.exit_code == 0, result.stderr
    (prompt,) = parquet.read_table(tmp_path / "data/train.parquet").to_pylist()[0]["prompt"]
    assert re.fullmatch(r"You are in \d+\.", prompt["content"])
    assert str(os.getpid()) not in prompt["content"]


# check


@pytest.fixture
def several(run, tmp_path, monkeypatch):
    """A folder of one environment whose rows have other arguments, and so other lengths."""
    env_id = echo_env.register(monkeypatch)
    options = ["--preset", "test", "--tasks", "0:20", "--val", 4]
    assert run("verl", "init", "--env", env_id, "--out", tmp_path, *options).exit_code == 0
    rows = seeded(env_id, range(16), "Say it.")
    for row in rows[5:]:
        row["extra_info"]["interaction_kwargs"]["env_kwargs"] = '{"size": 2}'
    return tmp_path, rows


def checks_of(run, place, name):
    findings = json.loads(run("verl", "check", place, "--json").stdout)["findings"]
    return [found for found in findings if found["check"] == name]


@pytest.mark.parametrize("at", [3, 11])
@pytest.mark.parametrize("by", ["first observation", "system prompt"])
def test_check_measures_every_prompt(run, several, at, by):
    """The longest counts, whichever row has it, also where a later row makes the same environment."""
    place, rows = several
    if by == "system prompt":
        rows[at]["prompt"][0]["content"] = "Say it. " * 1250
    else:
        rows[at]["extra_info"]["interaction_kwargs"]["env_kwargs"] = '{"says": 10000}'
    write_rows(place / "data/train.parquet", rows)
    (found,) = checks_of(run, place, "prompt length")
    assert found["status"] == "warning"
    assert f"data/train.parquet, row {at}: the system prompt and the first observation of" in found["text"]
    assert "have 28" in found["text"]  # hundred tokens, of 3.5 characters


def test_check_names_the_row_whose_environment_failed(run, several):
    place, rows = several
    rows[9]["extra_info"]["interaction_kwargs"]["env_kwargs"] = '{"nonsense": 1}'
    write_rows(place / "data/more.parquet", rows[8:])
    write_rows(place / "data/train.parquet", rows[:8])
    config({"data.train_files": [f"data/{name}.parquet" for name in ("train", "more")]})(place)
    wrong = [each for each in checks_of(run, place, "environment") if each["status"] == "problem"]
    (found,) = wrong
    assert found["text"].startswith("data/more.parquet, row 1: echo_env:own/Echo-v0 failed: WrongArguments")


def test_the_commands_of_the_document_run(run, checked, tmp_path, monkeypatch, textcraft_url):
    """But for the training itself, which needs a GPU; `my_package` is a name to be replaced."""
    monkeypatch.setenv("AGENTGYM_TEXTCRAFT_URL", textcraft_url)
    page = Path(__file__).resolve().parents[2] / "docs/training/recipes.md"
    blocks = re.findall(r"^```console\n(.*?)^```", page.read_text("utf-8"), re.DOTALL | re.MULTILINE)
    commands = [shlex.split(line) for block in blocks for line in block.splitlines()]
    assert [words[2] if words[0] == "agentgym" else words[0] for words in commands] == [
        "init",
        "check",
        "bash",
        "init",
        "init",
        "cd",
        "init",
    ]
    monkeypatch.chdir(tmp_path)
    assert run(*commands[0][1:]).exit_code == 0
    write_rows(tmp_path / "runs/craft/data/train.parquet", seeded(TEXTCRAFT, range(32), "Craft it."))
    write_rows(tmp_path / "runs/craft/data/val.parquet", seeded(TEXTCRAFT, range(32, 34), "Craft it."))
    assert commands[1][1:] == ["verl", "check", "runs/craft"]
    assert checked("runs/craft") == []
    assert Path(commands[2][1]).is_file()
    monkeypatch.setitem(sys.modules, "my_package", echo_env)
    echo_env.register(monkeypatch, "my/Env-v0")
    assert run(*commands[3][1:]).exit_code == 0
    rows = parquet.read_table(tmp_path / "runs/mine/data/train.parquet").to_pylist()
    assert (len(rows), rows[0]["prompt"][0]["content"]) == (450, "Echo!" * 4)
    assert run(*commands[4][1:]).exit_code == 0
    assert commands[5] == ["cd", "runs/nodes", "&&", "sbatch", "slurm.sh"]
    assert Path("runs/nodes/slurm.sh").is_file()
    assert run(*commands[6][1:]).exit_code == 0
    rows = parquet.read_table(tmp_path / "runs/joint/data/train.parquet").to_pylist()
    assert Counter(row["data_source"] for row in rows) == {
        "agentgym/Maze-v0": 128,
        "agentgym/TextCraft-v0": 256,
    }
