"""Shell completion, by the protocol of the shell in a process of its own, or in this one."""

import json
import os
import subprocess
import sys

import pytest

from agentgym_gym._cli import completion


def protocol(words):
    """Return the variables by which bash requests the completion of the last word."""
    return {
        "_AGENTGYM_COMPLETE": "complete_bash",
        "COMP_WORDS": words,
        "COMP_CWORD": str(len(words.split(" ")) - 1),
    }


@pytest.fixture
def complete(run):
    return lambda words: run(prog_name="agentgym", env=protocol(words)).stdout.split()


@pytest.fixture
def runs(tmp_path, monkeypatch):
    """Creates folders of runs in the working directory."""
    for name in ("runs/one", "runs/two/a", "runs/two/b", "other/one"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "episodes.jsonl").touch()
    (tmp_path / "runs" / "grpo").mkdir()
    (tmp_path / "runs" / "grpo" / "episodes-1.jsonl").touch()
    for name in ("runs/none", ".hidden/one", "docs"):
        (tmp_path / name).mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ("agentgym play Te", ["TextCraft"]),
        ("agentgym eval We", ["WebShop", "WebArena", "Weather"]),
        ("agentgym data rl agentgym/Ma", ["agentgym/Maze-v0"]),
        ("agentgym verl init --env BI", ["BIRD"]),
        ("agentgym serve m", ["maze", "movie", "miniwob"]),
        ("agentgym eval Maze --action-format co", ["code_as_action"]),
        ("agentgym eval Maze --agent ", ["oracle", "oracle:thoughts", "random", "replay:"]),
        ("agentgym eval my_module:my/Env-v0 --agent o", ["oracle", "oracle:thoughts"]),
        ("agentgym eval TextCraft --split t", ["train", "test"]),
        ("agentgym eval SQLGym --split ", ["train", "dev"]),
        ("agentgym data rl TextCraft Maze --split Maze=t", ["Maze=train", "Maze=test"]),
        ("agentgym verl init --env TextCraft=2 --split te", ["test"]),
        ("agentgym validate TextCraft --gold o", ["oracle", "oracle:thoughts"]),
    ],
)
def test_the_shell_completes(complete, words, offered):
    assert complete(words) == offered


@pytest.mark.parametrize("command", ["report", "table", "compare", "export", "data sft", "verl sft"])
def test_run_folders(complete, runs, command):
    assert complete(f"agentgym {command} runs/t") == ["runs/two", "runs/two/a", "runs/two/b"]


def test_run_folders_from_anywhere(runs):
    everything = [
        "other",
        "other/one",
        "runs",
        "runs/grpo",
        "runs/one",
        "runs/two",
        "runs/two/a",
        "runs/two/b",
    ]
    assert completion.complete_run("") == everything
    assert completion.complete_run("runs/") == everything[3:]
    assert completion.complete_run(f"{runs}/runs/o") == [f"{runs}/runs/one"]
    assert completion.complete_run("nothing/o") == []
    assert completion.complete_run("runs/none") == []


def test_a_replayed_run(complete, runs):
    assert complete("agentgym eval Maze --agent replay:other/") == ["replay:other/one"]


def test_the_search_for_runs_is_bounded(runs, monkeypatch):
    monkeypatch.setattr(completion, "_MOST_FOLDERS", 2)
    assert completion.complete_run("runs/") == ["runs/grpo"]


def test_completion_imports_nothing_heavy(runs):
    code = """
import json, sys
from agentgym_gym.__main__ import main
try:
    main()
finally:
    print(json.dumps(sorted(module for module in sys.modules if "." not in module)), file=sys.stderr)
"""
    words = {**os.environ, **protocol("agentgym report runs/o")}
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=words, cwd=runs
    )
    assert result.stdout.split() == ["runs/one"]
    modules = json.loads(result.stderr)
    heavy = {"torch", "verl", "verl_bridge", "ray", "pyarrow", "transformers", "fastapi", "openai"}
    assert heavy.isdisjoint(modules)
