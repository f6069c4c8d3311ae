"""The output folders of `agentgym eval` without `--out`."""

import os
import re
import shlex
import shutil
import time
from pathlib import Path

import pytest

COUNT = ("eval", "counting_env:bridge/Count-v0", "--agent", "random")


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def at(monkeypatch):
    """Sets the time in the names of folders."""
    return lambda second: monkeypatch.setattr(time, "strftime", lambda *_: f"20261125T2215{second}Z")


def folders():
    return sorted(path.name for path in Path("runs").iterdir())


def lengths():
    """Return the number of episodes of each run."""
    return [len((Path("runs") / name / "episodes.jsonl").read_text().splitlines()) for name in folders()]


def test_a_second_run_has_its_own_folder(run):
    for _ in range(2):
        result = run(*COUNT, "--tasks", "3:5")
        assert (result.exit_code, result.stderr) == (0, "")
    first, second = folders()
    assert re.fullmatch(r"Count-v0-random-\d{8}T\d{6}Z", first)
    assert second.startswith("Count-v0-random-")
    assert all((Path("runs") / name / "summary.json").exists() for name in (first, second))


@pytest.mark.slow
def test_runs_of_the_same_second_do_not_collide(run, at):
    at(30)
    for tasks in ("3", "3:5", "3:6"):
        assert run(*COUNT, "--tasks", tasks).exit_code == 0
    name = "Count-v0-random-20261125T221530Z"
    assert folders() == [name, f"{name}-2", f"{name}-3"]
    assert lengths() == [1, 2, 3]


def test_of_runs_that_begin_at_once_each_has_a_folder(run, at, monkeypatch):
    at(30)
    name, make = "Count-v0-random-20261125T221530Z", os.mkdir

    def make_after_another(path, *mode):
        if Path(path).name == name and not Path(path).exists():
            make(path, *mode)
        make(path, *mode)

    monkeypatch.setattr(os, "mkdir", make_after_another)
    assert run(*COUNT, "--tasks", "3").exit_code == 0
    assert folders() == [name, f"{name}-2"]
    assert list(Path("runs", name).iterdir()) == []


def test_a_run_that_writes_nothing_leaves_no_folder(run, unreachable_url):
    result = run("eval", "TextCraft", "--agent", "oracle", "--server", unreachable_url)
    assert result.exit_code == 2
    assert folders() == []


def test_resume_continues_the_latest_run_of_the_same_name(run, at):
    for second in (30, 31, 32):
        at(second)
        run(*COUNT, "--tasks", "3:5")
    result = run(*COUNT, "--tasks", "3:8", "--resume")
    assert result.exit_code == 0
    assert lengths() == [2, 2, 5]


def test_resume_without_an_earlier_run_begins_one(run, at):
    at(30)
    assert run(*COUNT, "--tasks", "3", "--resume").exit_code == 0
    assert folders() == ["Count-v0-random-20261125T221530Z"]


def test_the_latest_run_is_by_time_and_then_by_number(run, at):
    at(30)
    assert run(*COUNT, "--tasks", "3").exit_code == 0
    (name,) = folders()
    others = [f"{name}-2", f"{name}-10", f"{name.replace('1125', '1124')}-30"]
    others += ["Count-v0-random", "Count-v0-random-copy", name.replace("random-2026", "random-b-2027")]
    for other in others:
        shutil.copytree(Path("runs", name), Path("runs", other))
    assert run(*COUNT, "--tasks", "3:5", "--resume").exit_code == 0
    assert dict(zip(folders(), lengths(), strict=True)) == {**dict.fromkeys([name, *others], 1), others[1]: 2}


def test_a_folder_that_cannot_be_created(run):
    Path("runs").write_text("a file")
    result = run(*COUNT, "--tasks", "3")
    assert result.exit_code == 2
    assert re.fullmatch(r"error: cannot write to \S+runs: .*; give another folder by --out\n", result.stderr)


def test_the_command_that_continues_names_the_folder(run):
    wrong = ("--env-kwargs", '{"wrong": "step exit"}')
    result = run("eval", "nasty_envs:nasty/Nasty-v0", "--agent", "nasty_envs:Says", "--tasks", "3", *wrong)
    (command,) = re.findall(r"^Continue: agentgym (.*)$", result.stdout, re.MULTILINE)
    assert shlex.split(command)[-4:] == ["--out", f"runs/{folders()[0]}", "--resume", "--retry-faulted"]
