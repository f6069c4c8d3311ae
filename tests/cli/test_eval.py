"""`agentgym eval`."""

import json
import os
import re
import signal
import subprocess
import sys
import time
import types

import httpx
import pytest

import programs
from agentgym_gym import find
from agentgym_gym.evaluate import load_oracle, read_run
from agentgym_gym.local_servers import LocalServer
from fake_server import FakeServer

ORACLE = type(load_oracle(find("TextCraft")))


def table(result):
    """Return the row of an eval's table by its headings."""
    lines = [re.split(r"  +", line.strip()) for line in result.stdout.splitlines()]
    at = next(i for i, line in enumerate(lines) if line[:2] == ["split", "tasks"])
    return dict(zip(lines[at], lines[at + 2], strict=True))


def evaluate(run, out, *more, agent="oracle", tasks="0:10"):
    usual = {"--agent": agent, "--tasks": tasks, "--out": out}
    left = [word for option, value in usual.items() if option not in more for word in (option, value)]
    return run("eval", "TextCraft", *left, *more)


@pytest.fixture
def own_agent(monkeypatch):
    """Makes an agent of a class, and returns its name on the command line."""

    def make(kind):
        module = types.ModuleType("own_agents")
        module.Own = kind
        monkeypatch.setitem(sys.modules, "own_agents", module)
        return "own_agents:Own"

    return make


def test_eval(run, tmp_path, textcraft_url):
    out = tmp_path / "run"
    result = evaluate(run, out, "--server", textcraft_url)
    assert result.exit_code == 0
    assert result.stderr == ""
    row = table(result)
    assert (row["episodes"], row["faulted"], row["success"], row["95 %"], row["score"]) == (
        "10",
        "0",
        "1.00",
        "0.72 to 1.00",
        "1.00",
    )
    assert row["parse errors"] == "0.0%"
    assert len((out / "episodes.jsonl").read_text("utf-8").splitlines()) == 10
    counters = json.loads((out / "summary.json").read_text("utf-8"))["timing"]["counters"]
    assert (
        f"\n{counters['requests']} requests to the environment TextCraft-v0 at {textcraft_url}.\n"
        in result.stdout
    )
    assert "\n10 tasks, split train.\n" in result.stdout
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
    assert {**table(first), "wall time": ""} == {**table(again), "wall time": ""}


def test_eval_with_thoughts_plays_the_same_actions(run, tmp_path, textcraft_url):
    """The replies of ``oracle:thoughts`` have a thought, and the actions of ``oracle``."""
    replies = {}
    for agent in ("oracle", "oracle:thoughts"):
        evaluate(run, tmp_path / agent, "--server", textcraft_url, agent=agent, tasks="0:3")
        lines = (tmp_path / agent / "episodes.jsonl").read_text("utf-8").splitlines()
        episodes = sorted(map(json.loads, lines), key=lambda episode: episode["task_id"])
        messages = [message for episode in episodes for message in episode["messages"]]
        replies[agent] = [each["content"] for each in messages if each["role"] == "assistant"]
    assert all("Left to do:" in reply for reply in replies["oracle:thoughts"])
    actions = [[reply.partition("\n\nAction:\n")[2] for reply in each] for each in replies.values()]
    assert actions[0] == actions[1] != []


def test_eval_by_chance(run, tmp_path, textcraft_url):
    options = ("--server", textcraft_url, "--max-turns", 3, "--seed", 4)
    result = evaluate(run, tmp_path, *options, agent="random", tasks="7")
    assert result.exit_code == 0
    assert (table(result)["success"], table(result)["turns"]) == ("0.00", "3.00")


def test_eval_of_a_mistyped_address_writes_nothing(run, tmp_path, unreachable_url):
    result = evaluate(run, tmp_path / "run", "--server", unreachable_url, tasks="0:2")
    assert result.exit_code == 2
    assert f"TextCraft is available: {unreachable_url}" in result.stderr
    assert "another server by --server" in result.stderr
    assert not (tmp_path / "run").exists()


@pytest.mark.slow
def test_eval_continues_after_the_server_returns(run, tmp_path, own_agent):
    server = LocalServer("textcraft")
    gone, stops = server.start(), [server.stop]

    class Fatal(ORACLE):
        def reset(self, env, observation, info):
            while stops:
                stops.pop()()
            super().reset(env, observation, info)

    agent = own_agent(Fatal)
    result = evaluate(run, tmp_path, "--server", gone, "--concurrency", 1, agent=agent, tasks="0:2")
    assert result.exit_code == 1
    assert (table(result)["faulted"], table(result)["success"], table(result)["score"]) == (
        "2",
        "-",
        "-",
    )
    assert "not scored." in result.stdout
    requests = f"requests to the environment TextCraft-v0 at {gone}; 2 of them retries"
    assert f"{requests}; faults: 2 ServerUnreachable." in result.stdout
    assert evaluate(run, tmp_path, "--server", gone, agent=agent, tasks="0:2").exit_code == 2
    again = ("--resume", "--retry-faulted")
    url = server.start()
    try:
        result = evaluate(run, tmp_path, "--server", url, *again, agent=agent, tasks="0:4")
    finally:
        server.stop()
    assert result.exit_code == 0
    assert (table(result)["episodes"], table(result)["faulted"]) == ("4", "0")
    assert len((tmp_path / "episodes.jsonl").read_text("utf-8").splitlines()) == 6


@pytest.mark.slow
def test_the_terminal_names_the_world(run, tmp_path):
    result = run("eval", "TextCraft", "--agent", "oracle", "--tasks", "0:2", "--out", tmp_path / "run")
    assert result.exit_code == 0
    assert re.match(r"TextCraft-v0 \(local world \d+\) by oracle\n", result.stdout)


@pytest.mark.slow
def test_the_terminal_and_the_run_name_who_made_a_server(run, tmp_path, textcraft_url, recordings, started):
    """AgentGym's is recognised by its description; a local one behind a gateway without its header is not."""
    rows = recordings("textcraft.jsonl")
    (description,) = (row["response_json"] for row in rows if row["path"] == "/openapi.json")

    client = httpx.Client(base_url=textcraft_url, headers={"content-type": "application/json"})

    def through(request, described):
        if request.path == "/openapi.json" and described is not None:
            return described
        reply = client.request(request.method, f"{request.path}?{request.query}", content=request.content)
        return reply.status_code, reply.json()

    for name, described, label in (
        ("gateway", None, "server of unknown make"),
        ("agentgym", description, "AgentGym's server"),
    ):
        server = started(FakeServer(lambda request, told=described: through(request, told)))
        out = tmp_path / name
        result = evaluate(run, out, "--server", server.url, tasks="0:2")
        assert (result.exit_code, result.stderr) == (0, "")
        assert result.stdout.startswith(f"TextCraft-v0 ({label}) by oracle\n")
        assert read_run(out).world == label
        assert f"world       {label}\n" in run("doctor", server.url).stdout
    client.close()


def test_eval_does_not_overwrite(run, tmp_path, textcraft_url):
    assert evaluate(run, tmp_path, "--server", textcraft_url, tasks="0").exit_code == 0
    result = evaluate(run, tmp_path, "--server", textcraft_url, tasks="0")
    assert result.exit_code == 2
    assert "--resume" in result.stderr
    assert evaluate(run, tmp_path, "--server", textcraft_url, "--resume", tasks="0,1").exit_code == 0


def test_eval_interrupted(run, tmp_path, textcraft_url, own_agent):
    class Impatient(ORACLE):
        def reset(self, env, observation, info):
            if info["task_id"] == 2:
                raise KeyboardInterrupt
            super().reset(env, observation, info)

    agent = own_agent(Impatient)
    result = evaluate(run, tmp_path, "--server", textcraft_url, "--concurrency", 1, agent=agent)
    assert result.exit_code == 130
    assert table(result)["episodes"] == "2"
    assert "give --resume to continue the run" in result.stderr
    assert json.loads((tmp_path / "summary.json").read_text("utf-8"))["run"]["finished"] is False


@pytest.mark.slow
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
    process = programs.start(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    episodes = tmp_path / "run" / "episodes.jsonl"
    deadline = time.monotonic() + 60
    while not (episodes.exists() and episodes.stat().st_size):
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    said, errors = process.communicate(timeout=20)
    assert process.returncode == 130, errors
    assert "Traceback" not in errors
    counted = json.loads((tmp_path / "run" / "summary.json").read_text("utf-8"))["episodes"]
    assert 0 < counted < 544
    assert counted == len(episodes.read_text("utf-8").splitlines())
    assert str(counted) in said
