"""The output folders of `agentgym eval` without `--out`."""

import re
import shlex
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from agentgym_gym._cli import run_folders
from agentgym_gym._cli.run_folders import latest, reserved

COUNT = ("eval", "counting_env:bridge/Count-v0", "--agent", "random")


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def one_second(monkeypatch):
    monkeypatch.setattr(run_folders, "_now", lambda: "20261125T221530Z")


def folders():
    return sorted(path.name for path in Path("runs").iterdir())


def test_a_second_run_has_a_folder_of_its_own(run):
    for _ in range(2):
        result = run(*COUNT, "--tasks", "3:5")
        assert (result.exit_code, result.stderr) == (0, "")
    first, second = folders()
    assert re.fullmatch(r"Count-v0-random-\d{8}T\d{6}Z", first)
    assert second.startswith("Count-v0-random-")
    assert all((Path("runs") / name / "summary.json").exists() for name in (first, second))


def test_two_runs_in_the_same_second_do_not_collide(one_second):
    def write(number):
        with reserved("a") as folder:
            (folder / str(number)).touch()
            return folder

    with ThreadPoolExecutor(8) as pool:
        written = list(pool.map(write, range(24)))
    assert len(set(written)) == 24
    assert all(len(list(folder.iterdir())) == 1 for folder in written)
    assert Path("runs/a-20261125T221530Z") in written
    assert Path("runs/a-20261125T221530Z-24") in written
    assert latest("a") == Path("runs/a-20261125T221530Z-24")


def test_a_run_that_writes_nothing_leaves_no_folder(run):
    result = run("eval", "TextCraft", "--agent", "oracle", "--server", "http://127.0.0.1:9")
    assert result.exit_code == 2
    assert folders() == []


def test_resume_continues_the_latest_run_of_the_same_name(run, monkeypatch):
    for second in range(3):
        monkeypatch.setattr(run_folders, "_now", lambda second=second: f"20261125T22153{second}Z")
        run(*COUNT, "--tasks", "3:5")
    result = run(*COUNT, "--tasks", "3:8", "--resume")
    assert result.exit_code == 0
    assert len(folders()) == 3
    counts = [len((Path("runs") / name / "episodes.jsonl").read_text().splitlines()) for name in folders()]
    assert counts == [2, 2, 5]


def test_resume_without_an_earlier_run_begins_one(run, one_second):
    assert run(*COUNT, "--tasks", "3", "--resume").exit_code == 0
    assert folders() == ["Count-v0-random-20261125T221530Z"]


def test_latest_is_by_time_and_then_by_number(here):
    assert latest("a") is None
    times = ("20261125T000000Z", "20261125T000000Z-2", "20261125T000000Z-10", "20261124T000000Z-30")
    for name in (*(f"a-{time}" for time in times), "a-b-20271125T000000Z", "a", "a-copy"):
        (here / "runs" / name).mkdir(parents=True)
    assert latest("a") == Path("runs/a-20261125T000000Z-10")


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
