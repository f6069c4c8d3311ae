"""The command line."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from typer.testing import CliRunner

import agentgym_gym
from agentgym_gym import oracles
from agentgym_gym.cli import app
from agentgym_gym.cli.console import clean
from agentgym_gym.oracles.textcraft import TextCraftOracle
from agentgym_gym.servers.local import LocalServer

NASTY = "\x1b[31m[red]made :smile: up[/red]\x1b]0;title\x07\x00 [/nothing]\r\n"


@pytest.fixture
def run(monkeypatch):
    """Runs a command in this process."""
    monkeypatch.setenv("COLUMNS", "200")

    def invoke(*arguments, **options):
        result = CliRunner().invoke(app, [str(argument) for argument in arguments], **options)
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return result

    return invoke


@pytest.fixture
def nasty():
    """URL of a TextCraft server that sends what a terminal obeys."""
    replies = {
        "/": "This is environment TextCraft.",
        "/create": {"id": 0},
        "/reset": {"observation": f"{NASTY}\nGoal: craft a."},
        "/step": {"observation": NASTY, "reward": 1, "done": True},
        "/close": True,
    }

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self):
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            content = json.dumps(replies.get(self.path, NASTY)).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_POST  # noqa: N815 - the names are http.server's

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


def agentgym(*arguments, **options):
    """Run a command in a process of its own."""
    return subprocess.run(
        [sys.executable, "-W", "error", "-m", "agentgym_gym", *map(str, arguments)],
        check=False,
        capture_output=True,
        text=True,
        timeout=60,
        **options,
    )


def table(result):
    """Return the row of an eval's table by its headings."""
    lines = [line.split("  ") for line in result.stdout.splitlines()]
    lines = [[cell.strip() for cell in line if cell.strip()] for line in lines]
    at = next(i for i, line in enumerate(lines) if line and line[0].startswith("episodes"))
    headings = " ".join(lines[at]).replace("mean ", "mean_").split()
    values = " ".join(lines[at + 2]).replace(" ± ", "±").split()
    return dict(zip(headings, values, strict=True))


# Of the whole


@pytest.mark.parametrize("command", [[], ["envs"], ["doctor"], ["serve"], ["play"], ["eval"]])
def test_help_reads_well_at_80_columns(run, monkeypatch, command):
    monkeypatch.setenv("COLUMNS", "80")
    result = run(*command, "--help")
    assert result.exit_code == 0
    assert "…" not in result.stdout
    assert "..." not in result.stdout.replace("[ARGS]...", "")
    assert max(map(len, result.stdout.splitlines())) <= 80


def test_every_option_has_help(run):
    lines = run("eval", "--help", env={"COLUMNS": "300"}).stdout.splitlines()
    options = [line for line in lines if line.lstrip().startswith("--")]
    assert len(options) == 13
    assert all(len(line.split("  ", 2)[-1].strip()) > 10 for line in options)


def test_version(run):
    assert run("--version").stdout == f"agentgym-gym {agentgym_gym.__version__}\n"


def test_in_a_process_of_its_own():
    result = agentgym("envs", "--json")
    assert (result.returncode, result.stderr) == (0, "")
    (textcraft,) = (e for e in json.loads(result.stdout) if e["id"] == "agentgym/TextCraft-v0")
    assert (textcraft["tasks"], textcraft["max_turns"]) == ({"all": 544}, 20)


def test_an_error_is_one_line_and_no_traceback():
    result = agentgym("eval", "Nope", "--agent", "oracle", "--tasks", "0", "--out", "never")
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr.startswith("error: there is no environment 'Nope'")
    assert result.stderr.count("\n") == 1


@pytest.mark.parametrize("module", ["typer", "rich"])
def test_without_the_extra_one_line_says_which(module):
    code = f"import sys; sys.modules[{module!r}] = None; from agentgym_gym.__main__ import main; main()"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert result.returncode == 2
    assert f"needs the package {module!r}" in result.stderr
    assert result.stderr.strip().endswith("pip install 'agentgym-gym[cli]'")


def test_clean_takes_out_what_a_terminal_obeys():
    assert clean(NASTY) == "[red]made :smile: up[/red] [/nothing]\n"
    assert clean("a\tb\nc é 漢 🙂") == "a\tb\nc é 漢 🙂"
    assert clean("\x9b31mred\x1b(B \x1bPdevice\x1b\\end \u202egnp") == "redB end gnp"
    began = time.monotonic()
    clean("\x1b]" * 500_000 + "\x1b[" * 500_000)
    assert time.monotonic() - began < 2


# envs, doctor


def test_envs_says_where_the_server_comes_from(run, monkeypatch):
    assert "local, started when needed" in run("envs").stdout
    monkeypatch.setenv("AGENTGYM_TEXTCRAFT_URL", "http://me:secret@10.0.0.1:1")
    said = run("envs").stdout
    assert "http://***@10.0.0.1:1" in said
    assert "secret" not in said


def test_doctor_knows_the_right_server(run, textcraft_url):
    result = run("doctor", textcraft_url)
    assert result.exit_code == 0
    assert "This is environment TextCraft." in result.stdout
    assert "agentgym/TextCraft-v0" in result.stdout
    found = json.loads(run("doctor", textcraft_url, "--json").stdout)
    assert found["ok"]
    assert 0 < found["round_trip_ms"] < 1000


def test_doctor_tells_what_is_wrong(run, nasty, textcraft_url):
    nothing = run("doctor", "http://127.0.0.1:9")
    assert nothing.exit_code == 1
    assert "could not connect" in nothing.stdout
    other = run("doctor", f"{nasty}/elsewhere")
    assert other.exit_code == 1
    assert "none of the environments known here: it says [red]made :smile: up[/red]" in other.stdout
    assert "\x1b" not in other.stdout
    missing = run("doctor", f"{textcraft_url}/elsewhere")
    assert missing.exit_code == 1
    assert "HTTP 404" in missing.stdout
    no_url = run("doctor", "localhost:36001")
    assert no_url.exit_code == 2
    assert no_url.stderr.startswith("error: URL='localhost:36001' is not the URL of a server")


def test_doctor_looks_around(run, monkeypatch, textcraft_url):
    result = run("doctor")
    assert result.exit_code == 0
    assert "gymnasium" in result.stdout
    assert "typer" in result.stdout
    monkeypatch.setenv("AGENTGYM_TEXTCRAFT_URL", textcraft_url)
    assert f"{textcraft_url}: well, " in run("doctor").stdout
    monkeypatch.setenv("AGENTGYM_TEXTCRAFT_URL", f"{textcraft_url},http://127.0.0.1:9")
    found = run("doctor", "--json")
    assert found.exit_code == 1
    (environment,) = (e for e in json.loads(found.stdout)["environments"] if "TextCraft" in e["id"])
    assert [each["ok"] for each in environment["probes"]] == [True, False]
    monkeypatch.setenv("AGENTGYM_TEXTCRAFT_URL", "nonsense")
    assert run("doctor").exit_code == 1


def test_doctor_says_how_to_install_what_is_missing(run, monkeypatch):
    def not_there(package):
        if package == "uvicorn":
            raise metadata.PackageNotFoundError
        return "1.0"

    from importlib import metadata  # noqa: PLC0415 - patched below

    monkeypatch.setattr(metadata, "version", not_there)
    assert "not installed (pip install 'agentgym-gym[servers]')" in run("doctor").stdout


# serve, play


def test_serve_until_told(run):
    process = subprocess.Popen(
        [sys.executable, "-m", "agentgym_gym", "serve", "textcraft"], stdout=subprocess.PIPE, text=True
    )
    with contextlib.closing(process.stdout):
        try:
            url = process.stdout.readline().split()[-1]
            assert run("doctor", url).exit_code == 0
        finally:
            process.send_signal(signal.SIGINT)
            assert process.wait(10) == 0


@pytest.mark.parametrize("name", ["Nope", "wordle"])
def test_serve_of_what_is_not_served(run, name):
    assert run("serve", name).exit_code == 2


@pytest.mark.parametrize("name", ["TextCraft", "textcraft", "agentgym/TextCraft-v0"])
def test_play(run, textcraft_url, name):
    result = run("play", name, "--task", 3, "--server", textcraft_url, input="inventory\n\nget 0 a\nquit\n")
    assert result.exit_code == 0
    assert result.stdout.count("The actions:") == 1
    assert "Task 3:" in result.stdout
    assert "> Inventory: You are not carrying anything." in result.stdout
    assert "A reply looks like this:" in result.stdout
    assert result.stdout.endswith("Score 0 after 2 turns: not solved.\n")


def test_play_to_the_end_on_a_server_that_sends_nasty_text(run, nasty):
    result = run("play", "textcraft", "--server", nasty, input="get 1 a\n")
    assert result.exit_code == 0
    assert "\x1b" not in result.stdout
    assert "\x00" not in result.stdout
    assert result.stdout.count("[red]made :smile: up[/red] [/nothing]") == 2
    assert result.stdout.endswith("Score 1 after 1 turns: solved.\n")


def test_play_when_input_ends(run, textcraft_url):
    result = run("play", "textcraft", "--server", textcraft_url, "--seed", 1, input="")
    assert result.exit_code == 0
    assert "Score 0 after 0 turns" in result.stdout


def test_play_without_a_server(run):
    result = run("play", "textcraft", "--server", "http://127.0.0.1:9")
    assert result.exit_code == 2
    assert "could not connect" in result.stderr


# eval


def evaluate(run, out, *more, agent="oracle", tasks="0:10"):
    return run("eval", "TextCraft", "--agent", agent, "--tasks", tasks, "--out", out, *more)


def test_eval(run, tmp_path, textcraft_url):
    out = tmp_path / "run"
    result = evaluate(run, out, "--server", textcraft_url)
    assert result.exit_code == 0
    assert result.stderr == ""
    row = table(result)
    assert (row["episodes"], row["faulted"], row["success"], row["mean_score"]) == (
        "10",
        "0",
        "1.00±0.00",
        "1.00",
    )
    assert row["unreadable"] == "0.0%"
    assert len((out / "episodes.jsonl").read_text("utf-8").splitlines()) == 10
    run_ = json.loads((out / "summary.json").read_text("utf-8"))["run"]
    assert run_["server"] == [textcraft_url]
    assert run_["options"]["max_turns"] == 20
    assert (run_["agent"], run_["seed"], run_["tasks"]) == ("oracle", 0, "0:10")


def test_eval_replays_an_eval(run, tmp_path, textcraft_url):
    first = evaluate(run, tmp_path / "a", "--server", textcraft_url, "--action-format", "tags")
    again = evaluate(
        run,
        tmp_path / "b",
        *("--server", textcraft_url, "--action-format", "tags"),
        agent=f"replay:{tmp_path / 'a' / 'episodes.jsonl'}",
    )
    assert {**table(first), "seconds": ""} == {**table(again), "seconds": ""}


def test_eval_by_chance(run, tmp_path, textcraft_url):
    options = ("--server", textcraft_url, "--max-turns", 3, "--seed", 4)
    result = evaluate(run, tmp_path, *options, agent="random", tasks="7")
    assert result.exit_code == 0
    assert (table(result)["success"], table(result)["mean_turns"]) == ("0.00", "3.00")


def test_eval_goes_on_after_the_server_was_gone(run, tmp_path):
    server = LocalServer("textcraft")
    gone = server.start()
    server.stop()
    result = evaluate(run, tmp_path, "--server", gone, tasks="0:2")
    assert result.exit_code == 1
    assert (table(result)["faulted"], table(result)["success"], table(result)["mean_score"]) == (
        "2",
        "-",
        "-",
    )
    assert "2 ended by ServerUnreachable; not scored." in result.stdout
    assert evaluate(run, tmp_path, "--server", gone, tasks="0:2").exit_code == 2
    url = server.start()
    try:
        result = evaluate(run, tmp_path, "--server", url, "--resume", tasks="0:4")
    finally:
        server.stop()
    assert result.exit_code == 0
    assert (table(result)["episodes"], table(result)["faulted"]) == ("4", "0")
    assert len((tmp_path / "episodes.jsonl").read_text("utf-8").splitlines()) == 6


def test_eval_does_not_overwrite(run, tmp_path, textcraft_url):
    assert evaluate(run, tmp_path, "--server", textcraft_url, tasks="0").exit_code == 0
    result = evaluate(run, tmp_path, "--server", textcraft_url, tasks="0")
    assert result.exit_code == 2
    assert "--resume" in result.stderr
    assert evaluate(run, tmp_path, "--server", textcraft_url, "--resume", tasks="0,1").exit_code == 0


def test_eval_interrupted(run, tmp_path, textcraft_url, monkeypatch):
    class Impatient(TextCraftOracle):
        def reset(self, env, observation, info):
            if info["task_id"] == 2:
                raise KeyboardInterrupt
            super().reset(env, observation, info)

    monkeypatch.setattr(oracles, "load", lambda _: Impatient())
    result = evaluate(run, tmp_path, "--server", textcraft_url)
    assert result.exit_code == 130
    assert table(result)["episodes"] == "2"
    assert "--resume goes on from here" in result.stderr
    assert json.loads((tmp_path / "summary.json").read_text("utf-8"))["run"]["finished"] is False


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--tasks", "540:600"], "0 to 543"),
        (["--tasks", "some"], "they look like"),
        (["--agent", "nobody"], "is not one of 'oracle'"),
        (["--agent", "replay:none.jsonl"], "cannot read none.jsonl"),
        (["--action-format", "xml"], "action_format='xml'"),
        (["--parser", "mine"], "parser='mine'"),
        (["--on-unknown", "cry"], "on_unknown='cry'"),
        (["--split", "test"], "split='test'"),
        (["--timeout", "0"], "timeout=0"),
        (["--server", "here"], "server='here'"),
    ],
)
def test_eval_tells_a_wrong_option(run, tmp_path, textcraft_url, options, told):
    result = evaluate(run, tmp_path / "run", "--server", textcraft_url, *options)
    assert result.exit_code == 2
    assert told in result.stderr
    assert not (tmp_path / "run" / "episodes.jsonl").exists()


@pytest.mark.skipif(os.name != "posix", reason="signals to a process")
def test_eval_interrupted_from_outside(tmp_path, textcraft_url):
    command = [
        sys.executable,
        "-m",
        "agentgym_gym",
        "eval",
        "TextCraft",
        "--agent",
        "oracle",
        "--tasks",
        "all",
    ]
    command += ["--out", str(tmp_path / "run"), "--server", textcraft_url]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    episodes = tmp_path / "run" / "episodes.jsonl"
    while not (episodes.exists() and episodes.stat().st_size):
        assert process.poll() is None
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    said, errors = process.communicate(timeout=20)
    assert process.returncode == 130
    assert "Traceback" not in errors
    counted = json.loads((tmp_path / "run" / "summary.json").read_text("utf-8"))["episodes"]
    assert 0 < counted < 544
    assert counted == len(episodes.read_text("utf-8").splitlines())
    assert str(counted) in said
