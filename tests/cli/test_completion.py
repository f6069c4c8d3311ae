"""Shell completion, by the protocol of the shell in a separate process, or in this one."""

import json

import pytest

import forked


def protocol(words):
    """Return the variables by which bash requests the completion of the last word."""
    return {
        "_AGENTGYM_COMPLETE": "complete_bash",
        "COMP_WORDS": words,
        "COMP_CWORD": str(len(words.split(" ")) - 1),
    }


@pytest.fixture
def complete(run):
    return lambda words: run(env=protocol(words)).stdout.split()


RUNS = ["runs/grpo", "runs/one", "runs/two", "runs/two/a", "runs/two/b"]


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


@pytest.mark.parametrize(
    ("word", "offered"),
    [
        ("", ["other", "other/one", "runs", *RUNS]),
        ("runs/", RUNS),
        ("{here}/runs/o", ["{here}/runs/one"]),
        ("nothing/o", []),
        ("runs/none", []),
    ],
)
def test_run_folders_from_anywhere(complete, runs, word, offered):
    expected = [each.format(here=runs) for each in offered]
    assert complete(f"agentgym report {word.format(here=runs)}") == expected


def test_a_replayed_run(complete, runs):
    assert complete("agentgym eval Maze --agent replay:other/") == ["replay:other/one"]


def test_the_search_for_runs_is_bounded(complete, runs):
    """So that the shell does not wait in a home folder."""
    for number in range(1_000):
        (runs / "other" / f"a{number}").mkdir()
    assert complete("agentgym report other/o") == ["other/one"]
    assert complete("agentgym report other/") == []


def test_completion_imports_nothing_heavy(runs):
    code = """
import json, sys
from agentgym_gym.__main__ import main
try:
    main()
finally:
    print(json.dumps(sorted(module for module in sys.modules if "." not in module)), file=sys.stderr)
"""
    result = forked.run(code, env=protocol("agentgym report runs/o"), cwd=runs)
    assert result.stdout.split() == ["runs/one"]
    modules = json.loads(result.stderr)
    heavy = {"torch", "verl", "verl_bridge", "ray", "pyarrow", "transformers", "fastapi", "openai"}
    assert heavy.isdisjoint(modules)
