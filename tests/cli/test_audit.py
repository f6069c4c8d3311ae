"""`agentgym audit`."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import audit_envs_command
from agentgym_gym.local_servers import LocalServer
from agentgym_gym.testing import PROPERTIES
from audit_envs_command import MARKUP
from doc_blocks import run_python

SOUND, UNSOUND, BROKEN = (f"audit_envs_command:audits/{name}-v0" for name in ("Seeded", "Unseeded", "Broken"))
QUICK = ("--only", "replay", "--budget", 5)


@pytest.fixture(scope="module")
def maze_url():
    server = LocalServer("maze")
    yield server.start()
    server.stop()


def test_a_sound_environment_exits_with_0(run):
    result = run("audit", SOUND, *QUICK)
    assert (result.exit_code, result.stderr) == (0, "")
    line, _, summary = result.stdout.splitlines()
    assert line.split()[:2] == ["replay", "passed"]
    assert summary.startswith("audits/Seeded-v0: 1 passed, in ")


def test_a_defect_has_a_sentence_advice_and_a_program_that_fails(run):
    result = run("audit", UNSOUND, *QUICK)
    assert (result.exit_code, result.stderr) == (1, "")
    first, *_ = result.stdout.splitlines()
    assert first.split()[:2] == ["replay", "error"]
    assert "\n1. replay (error): played twice, task " in result.stdout
    assert "\nAdvice: let reset(seed=...) or the task decide everything" in result.stdout
    program = result.stdout.partition("This program fails until it is repaired:\n\n")[2].partition("\n\n")[0]
    assert 1 < len(program.splitlines()) <= 10
    for env_id, status in ((UNSOUND, 1), (SOUND, 0)):
        ended = run_python(program.replace(UNSOUND, env_id), Path(audit_envs_command.__file__).parent)
        assert (ended.returncode, "AssertionError" in ended.stderr) == (status, bool(status)), ended.stderr


def test_the_environment_of_a_url_is_audited(run, maze_url):
    result = run("audit", maze_url, *QUICK, "--tasks", "0:3", "--json")
    assert result.exit_code == 0, result.stderr
    found = json.loads(result.stdout)
    assert (found["env_id"], found["about"]["tasks"]) == ("agentgym/Maze-v0", [0, 1, 2])
    assert result.stderr.startswith("replay ")  # progress


def test_the_server_and_its_headers_are_arguments_of_the_environment(run, maze_url, tmp_path):
    token = "a-token-of-a-user"  # noqa: S105
    options = ("--header", f"X-Token: {token}", "--out", tmp_path / "out", "--page", tmp_path / "page.html")
    result = run("audit", "Maze", "--server", maze_url, *QUICK, "--split", "test", *options)
    assert result.exit_code == 0, result.stderr
    written = [file.read_text() for file in (tmp_path / "out" / "audit.jsonl", tmp_path / "page.html")]
    assert all(token not in text for text in (result.output, *written))
    assert maze_url in written[0]
    twice = run("audit", "Maze", "--server", maze_url, "--env-kwargs", f'{{"server": "{maze_url}"}}')
    assert twice.exit_code == 2
    assert "--env-kwargs gives server" in twice.stderr


def test_nothing_that_a_terminal_obeys_is_printed(run):
    result = run("audit", UNSOUND, *QUICK, "--env-kwargs", json.dumps({"text": MARKUP}))
    assert result.exit_code == 1
    assert not {"\x1b", "\u202e"} & set(result.output)


def test_nothing_could_be_checked(run):
    result = run("audit", BROKEN, *QUICK)
    assert result.exit_code == 2
    assert result.stdout.splitlines()[0].split()[:2] == ["replay", "skipped"]
    assert "no episode can be started: RuntimeError: no dice" in result.stdout
    assert result.stderr == "error: no property could be checked; the reasons are above\n"


def test_an_audit_is_resumed_and_each_result_has_its_reason(run, tmp_path):
    options = ("audit", SOUND, "--only", "replay", "--out", tmp_path)
    first = run(*options, "--budget", 5, "--json")
    assert first.exit_code == 0
    again = run(*options, "--budget", 5)
    assert (again.exit_code, again.stdout) == (2, "")
    assert "give --resume, or another folder" in again.stderr
    resumed = run(*options, "--budget", 7, "--resume", "--json")
    assert [json.loads(each.stdout)["results"] for each in (first, resumed)] == [
        json.loads(first.stdout)["results"]
    ] * 2
    other = run(*options, "--seed", 3, "--resume")
    assert "has an audit with other settings" in other.stderr


def test_the_page_is_written_and_no_other_file_is_replaced(run, tmp_path):
    page, other = tmp_path / "audit.html", tmp_path / "other.html"
    for _ in range(2):
        result = run("audit", SOUND, *QUICK, "--page", page)
        assert result.exit_code == 0
        assert result.stdout.endswith(f"Written to {page}.\n")
    other.write_text("mine")
    for path, part in (
        (other, "exists and is not the page"),
        (tmp_path / "a" / "b.html", "there is no folder"),
    ):
        refused = run("audit", SOUND, *QUICK, "--page", path)
        assert (refused.exit_code, refused.stdout) == (2, "")
        assert part in refused.stderr
    assert other.read_text() == "mine"


def test_the_list_needs_no_environment(run):
    printed = run("audit", "--list").stdout
    for each in PROPERTIES:
        assert f"{each.name} ({each.severity})\n  {each.claim}\n  {each.cost}\n" in printed
    listed = json.loads(run("audit", "--list", "--json").stdout)
    assert [each["name"] for each in listed] == [each.name for each in PROPERTIES]


@pytest.mark.parametrize(
    ("options", "part"),
    [
        ((), "ENV is missing: give an environment, or --list"),
        ((SOUND, "--only", "replai"), "--only='replai' should be one of replay"),
        ((SOUND, "--budget", "0"), "--budget=0.0 should be a positive number of seconds"),
        ((SOUND, "--resume"), "--resume needs the folder of the earlier audit: give --out"),
        ((SOUND, "--split", "test"), "--split='test' should be absent: the environment has no splits"),
        (("Maze", "--split", "tests"), "--split='tests' should be one of"),
        (("Maze", "--tasks", "99:100"), "99"),
        ((SOUND, "--solver", "random"), "--solver='random' should be oracle, replay:PATH or MODULE:NAME"),
        ((SOUND, "--header", "X"), "--header should be given as 'NAME: VALUE'"),
        ((SOUND, "--server", "http://127.0.0.1:1"), "cannot create audits/Seeded-v0"),
        (("http://127.0.0.1:1",), "could not connect"),
        (("Nope",), "there is no environment 'Nope'"),
    ],
)
def test_mistakes_are_one_line_and_nothing_is_played(run, options, part):
    result = run("audit", *options)
    assert (result.exit_code, result.stdout) == (2, "")
    assert part in result.stderr
    assert result.stderr.count("\n") == 1


def test_without_hypothesis_one_line_names_the_extra():
    code = "import sys; sys.modules['hypothesis'] = None; from agentgym_gym.__main__ import main; main()"
    ended = subprocess.run(
        [sys.executable, "-c", code, "audit", "TextCraft"], capture_output=True, text=True, check=False
    )
    assert ended.returncode == 2
    assert "An audit needs the package 'hypothesis'" in ended.stderr
    assert "pip install '.[testing]'" in ended.stderr


def test_the_shell_completes_properties(run):
    words = "agentgym audit Maze --only repl"
    variables = {"_AGENTGYM_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": "4"}
    assert run(env=variables).stdout.split() == ["replay"]
