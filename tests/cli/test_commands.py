"""The command line as a whole, and all commands but `eval`."""

import contextlib
import importlib.metadata
import json
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import agentgym_gym
import command_line
import forked
import programs
from agentgym_gym import local_servers as local
from agentgym_gym.__main__ import main
from clock import cpu_seconds
from fake_server import FakeServer

NASTY = "\x1b[31m[red]made :smile: up[/red]\x1b]0;title\x07\x00 [/nothing]\r\n"


@pytest.fixture
def sends(started):
    """Starts a TextCraft server that sends a text in its observations."""

    def start(text):
        replies = {
            "/": "This is environment TextCraft.",
            "/create": {"id": 0},
            "/reset": {"observation": f"{text}\nGoal: craft a."},
            "/step": {"observation": text, "reward": 1, "done": True},
            "/close": True,
        }
        return started(FakeServer(lambda request: replies.get(request.path, text))).url

    return start


@pytest.fixture
def nasty(sends):
    """URL of a TextCraft server that sends what a terminal obeys."""
    return sends(NASTY)


def agentgym(*arguments, **options):
    """Run a command in a separate process."""
    return subprocess.run(
        [sys.executable, "-W", "error", "-m", "agentgym_gym", *map(str, arguments)],
        check=False,
        capture_output=True,
        text=True,
        timeout=60,
        **options,
    )


# Of the whole


@pytest.mark.parametrize("words", [(), ("data",), ("verl",), *command_line.commands()], ids=" ".join)
def test_help_reads_well_at_80_columns(run, words):
    result = run(*words, "--help", env={"COLUMNS": "80"})
    assert result.exit_code == 0
    assert "…" not in result.stdout
    assert "..." not in result.stdout.partition("\n\n")[2]
    assert max(map(len, result.stdout.splitlines())) <= 80


@pytest.mark.parametrize("words", command_line.commands(), ids=" ".join)
def test_a_help_line_states_what_the_option_sets_in_ten_words(words):
    """In lower case, except a first word such as HTTP; the default is in brackets, not in the text."""
    *options, own = command_line.options(*words)
    assert "--help" in own.names
    for option in options:
        assert option.help, option
        assert len(option.help.split()) <= 10, option
        assert option.help[0].islower() or option.help[:2].isupper(), option
        assert not option.help.endswith("."), option
        assert "by default" not in option.help, option


def test_version(run):
    assert run("--version").stdout == f"agentgym-gym {agentgym_gym.__version__}\n"


@pytest.mark.slow
def test_in_a_separate_process():
    result = agentgym("envs", "--json")
    assert (result.returncode, result.stderr) == (0, "")
    (textcraft,) = (e for e in json.loads(result.stdout) if e["id"] == "agentgym/TextCraft-v0")
    assert (textcraft["tasks"], textcraft["max_turns"]) == ({"all": 544, "train": 440, "test": 91}, 20)


@pytest.mark.slow
def test_an_error_is_one_line_and_no_traceback():
    result = agentgym("eval", "Nope", "--agent", "oracle", "--tasks", "0", "--out", "never")
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr.startswith("error: there is no environment 'Nope'")
    assert result.stderr.count("\n") == 1


@pytest.mark.parametrize("module", ["typer", "rich"])
def test_without_the_extra_one_line_names_it(module):
    code = f"import sys; sys.modules[{module!r}] = None; from agentgym_gym.__main__ import main; main()"
    result = forked.run(code)
    assert result.returncode == 2
    assert f"needs the package {module!r}" in result.stderr
    assert "pip install '.[cli]'" in result.stderr
    assert result.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        (NASTY, "[red]made :smile: up[/red] [/nothing]\n"),
        ("a\tb\nc é 漢 🙂", "a\tb\nc é 漢 🙂"),
        ("\x9b31mred\x1b(B \x1bPdevice\x1b\\end \u202egnp", "redB end gnp"),
    ],
)
def test_play_prints_nothing_that_a_terminal_obeys(run, sends, text, printed):
    result = run("play", "textcraft", "--server", sends(text), input="get 1 a\n")
    assert result.stdout.endswith(f"\n> {printed}\n\nScore 1 after 1 turns: solved.\n")


def test_unfinished_sequences_are_left_out_in_linear_time(run, sends):
    url = sends("\x1b]" * 100_000 + "\x1b[" * 100_000)
    assert cpu_seconds(lambda: run("play", "textcraft", "--server", url, input="get 1 a\n"), 5.0) <= 5.0


# envs, doctor


def test_envs_prints_where_the_server_comes_from(run, monkeypatch):
    shown = run("envs").stdout
    for environment, seed in (
        ("WebShop", ", seed 0"),
        ("TextCraft", ""),
        ("Maze", ""),
        ("Wordle", ", seed 0"),
    ):
        (line,) = (line for line in shown.splitlines() if line.startswith(f"agentgym/{environment}-v0"))
        assert re.search(rf"  local world \d+{seed}$", line)
    monkeypatch.setenv("AGENTGYM_TEXTCRAFT_URL", "http://me:secret@10.0.0.1:1")
    said = run("envs").stdout
    assert "http://***@10.0.0.1:1" in said
    assert "secret" not in said
    monkeypatch.delenv("AGENTGYM_TEXTCRAFT_URL")
    monkeypatch.setattr(local, "available", lambda _: "fastapi is not there")
    assert "fastapi is not there; or set AGENTGYM_<NAME>_URL" in run("envs").stdout
    notes = {each["id"]: each["server_note"] for each in json.loads(run("envs", "--json").stdout)}
    assert notes["agentgym/TextCraft-v0"] == "none; set AGENTGYM_TEXTCRAFT_URL. fastapi is not there"


def test_doctor_recognises_the_right_server(run, textcraft_url):
    result = run("doctor", textcraft_url)
    assert result.exit_code == 0
    assert "This is environment TextCraft." in result.stdout
    assert "agentgym/TextCraft-v0" in result.stdout
    found = json.loads(run("doctor", textcraft_url, "--json").stdout)
    assert found["ok"]
    assert found["round_trip_ms"] > 0


def test_doctor_prints_what_is_wrong(run, nasty, textcraft_url, unreachable_url):
    nothing = run("doctor", unreachable_url)
    assert nothing.exit_code == 1
    assert "could not connect" in nothing.stdout
    other = run("doctor", f"{nasty}/elsewhere")
    assert other.exit_code == 1
    assert "no environment of the catalogue: its root answers [red]made :smile: up[/red]" in other.stdout
    assert "\x1b" not in other.stdout
    missing = run("doctor", f"{textcraft_url}/elsewhere")
    assert missing.exit_code == 1
    assert "HTTP 404" in missing.stdout
    no_url = run("doctor", "localhost:36001")
    assert no_url.exit_code == 2
    assert no_url.stderr.startswith("error: URL='localhost:36001' is not the URL of a server")


def test_doctor_looks_around(run, monkeypatch, textcraft_url, unreachable_url, nasty):
    result = run("doctor")
    assert result.exit_code == 0
    assert "gymnasium" in result.stdout
    assert "typer" in result.stdout
    monkeypatch.setenv("AGENTGYM_TEXTCRAFT_URL", textcraft_url)
    assert f"{textcraft_url}: ok, " in run("doctor").stdout
    monkeypatch.setenv("AGENTGYM_TEXTCRAFT_URL", f"{textcraft_url},{unreachable_url}")
    found = run("doctor", "--json")
    assert found.exit_code == 1
    (environment,) = (e for e in json.loads(found.stdout)["environments"] if "TextCraft" in e["id"])
    assert [each["ok"] for each in environment["probes"]] == [True, False]
    monkeypatch.setenv("AGENTGYM_TEXTCRAFT_URL", f"{nasty}/elsewhere")
    assert "not TextCraft: its root answers [red]made" in run("doctor").stdout
    monkeypatch.setenv("AGENTGYM_TEXTCRAFT_URL", "nonsense")
    assert run("doctor").exit_code == 1


def test_doctor_prints_how_to_install_what_is_missing(run, monkeypatch):
    def not_there(package):
        if package == "uvicorn":
            raise importlib.metadata.PackageNotFoundError
        return "1.0"

    monkeypatch.setattr(importlib.metadata, "version", not_there)
    shown = run("doctor").stdout
    assert re.search(r"uvicorn +not installed, extra servers\n", shown)
    assert "pip install '.[EXTRA]'" in shown


def test_doctor_lists_only_packages_for_this_python(run, monkeypatch):
    after = f"3.{sys.version_info.minor + 1}"
    required = [
        f"backport>=2; python_version < '{after}' and extra == 'cli'",
        f"successor; python_version >= '{after}' and extra == 'cli'",
        "other; extra == 'ray'",
    ]
    monkeypatch.setattr(importlib.metadata, "requires", lambda _: required)
    printed = run("doctor").stdout
    assert re.search(r"backport +not installed, extra cli\n", printed)
    assert re.search(r"other +not installed, extra ray\n", printed)
    assert "successor" not in printed


# serve, play


@pytest.mark.slow
@pytest.mark.parametrize("name", ["maze", pytest.param("textcraft", marks=pytest.mark.slow)])
def test_serve_until_it_is_stopped(run, name):
    process = programs.start(
        [sys.executable, "-m", "agentgym_gym", "serve", name], stdout=subprocess.PIPE, text=True
    )
    with contextlib.closing(process.stdout):
        try:
            url = process.stdout.readline().split()[-1]
            assert run("doctor", url).exit_code == 0
        finally:
            process.send_signal(signal.SIGINT)
            assert process.wait(10) == 0


@pytest.mark.parametrize("name", ["TextCraft", "textcraft", "agentgym/TextCraft-v0"])
def test_play(run, textcraft_url, name):
    result = run("play", name, "--task", 3, "--server", textcraft_url, input="inventory\n\nget 0 a\nquit\n")
    assert result.exit_code == 0
    assert re.match(r"TextCraft-v0 \(local world \d+\)\n\n", result.stdout)
    assert result.stdout.count("The actions:") == 1
    assert "Task 3:" in result.stdout
    assert "> Inventory: You are not carrying anything." in result.stdout
    assert "Write it like this:" in result.stdout
    assert result.stdout.endswith("Score 0 after 2 turns: not solved.\n")


def test_play_to_the_end_on_a_server_that_sends_nasty_text(run, nasty):
    result = run("play", "textcraft", "--server", nasty, input="get 1 a\n")
    assert result.exit_code == 0
    assert result.stdout.startswith("TextCraft-v0 (server of unknown make)\n\n")
    assert "\x1b" not in result.stdout
    assert "\x00" not in result.stdout
    assert result.stdout.count("[red]made :smile: up[/red] [/nothing]") == 2
    assert result.stdout.endswith("Score 1 after 1 turns: solved.\n")


@pytest.mark.parametrize(("name", "prompt"), [("Instructed", "You count."), ("Count", "Task 3:")])
def test_play_shows_the_system_prompt_of_a_wrapper(run, name, prompt):
    result = run("play", f"counting_env:bridge/{name}-v0", "--task", 3, input="1\nquit\n")
    assert result.exit_code == 0, result.stderr
    assert result.stdout.startswith(f"{name}-v0\n\n{prompt}")
    assert "Task 3:" in result.stdout
    assert "Score 1 after 1 turns" in result.stdout


def test_play_when_input_ends(run, textcraft_url):
    result = run("play", "textcraft", "--server", textcraft_url, "--seed", 1, input="")
    assert result.exit_code == 0
    assert "Score 0 after 0 turns" in result.stdout


def test_play_without_a_server(run, unreachable_url):
    result = run("play", "textcraft", "--server", unreachable_url)
    assert result.exit_code == 2
    assert "could not connect" in result.stderr


def test_ctrl_c_during_imports_prints_no_traceback():
    code = """
import sys, types
class Slow(types.ModuleType):
    def __getattr__(self, name):
        raise KeyboardInterrupt
sys.modules["typer"] = Slow("typer")
from agentgym_gym.__main__ import main
main()
"""
    ended = forked.run(code)
    assert (ended.returncode, ended.stdout, ended.stderr) == (130, "", "")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="the system has no device that is always full")
def test_a_full_disk_is_one_line(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["agentgym", "envs", "--json"])
    with open("/dev/full", "w") as full, monkeypatch.context() as patch:  # noqa: PTH123 - as a shell opens it
        patch.setattr(sys, "stdout", full)
        with pytest.raises(SystemExit) as ended:
            main()
        with contextlib.suppress(OSError):
            full.close()
    assert ended.value.code == 2
    assert (
        capsys.readouterr().err
        == "error: cannot write the output: No space left on device; free some space\n"
    )
