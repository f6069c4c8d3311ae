"""`agentgym eval` of models behind a fake server, of several agents and environments, resumed and killed."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from pyarrow import parquet

import programs
from agentgym_gym.rollout import drop_blank_system
from counting_env import Instructed
from fake_model import asked, completion, refused
from fake_server import FakeServer, in_turn

KEY = "sk-secret-of-mine"


def summary(folder):
    return json.loads((folder / "summary.json").read_text("utf-8"))


def lasting(folder):
    """Return the content of a summary, without what depends on the clock and on how the run was started."""
    value = summary(folder)
    del value["timing"]
    run = value.pop("run")
    return value, {name: run[name] for name in ("env_id", "agent", "options", "samples", "finished")}


@pytest.fixture
def model(started, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    return lambda *answers: started(FakeServer(in_turn(*answers)))


def test_a_model_is_evaluated_in_one_command(run, tmp_path, textcraft_url, model):
    usage = {"prompt_tokens": 100, "completion_tokens": 7}
    server = model(completion("Thought:\nLet me see.\n\nAction:\ninventory", usage=usage))
    options = ("--server", textcraft_url, "--max-turns", 2, "--temperature", 0, "--tasks", "0:3")
    url = server.url.replace("http://", "http://me:hidden@")
    result = run(
        "eval", "TextCraft", "--model", "tiny", "--base-url", f"{url}/v1", *options, "--out", tmp_path
    )
    assert result.exit_code == 0, result.stderr
    assert "TextCraft-v0 (local world 3) by tiny" in result.stdout
    written = summary(tmp_path)
    assert (written["episodes"], written["success_rate"], written["endings"]) == (3, 0.0, {"truncated": 3})
    assert written["tokens"]["completion"] == 3 * 2 * 7
    assert written["run"]["agent_settings"]["sampling"] == {"temperature": 0.0}
    assert "craft" in written["run"]["system_prompt"]
    assert written["run"]["server_says"] == ["This is environment TextCraft."]
    assert written["run"]["served_by"][0].endswith(" (TextCraft)")
    assert written["run"]["model_server"] == {"model": ["m"]}
    first = asked(server)[0]
    assert first["messages"][0]["content"] == written["run"]["system_prompt"]
    everything = "".join(path.read_text("utf-8") for path in tmp_path.iterdir()) + result.output
    assert KEY not in everything
    assert "hidden" not in everything


def test_a_system_prompt_of_a_file(run, tmp_path, textcraft_url, model):
    """As for training: the same file by the same option gives the same message."""
    (tmp_path / "mine.txt").write_text("Craft it.\n{{system_prompt}}\n", "utf-8")
    (tmp_path / "around.txt").write_text("Be brief. {{system_prompt}}", "utf-8")
    server = model(completion("Action:\ninventory"))
    given = ("--system-prompt", tmp_path / "mine.txt")
    options = ("--server", textcraft_url, "--max-turns", 1, "--tasks", "0:1")
    tiny = ("eval", "TextCraft", "--model", "tiny", "--base-url", f"{server.url}/v1", *options)
    for number, more in enumerate([(), ("--prompt", tmp_path / "around.txt")]):
        result = run(*tiny, *given, *more, "--out", tmp_path / str(number))
        assert result.exit_code == 0, result.stderr
    sent = [request["messages"][0]["content"] for request in asked(server)]
    assert sent == ["Craft it.\n{{system_prompt}}", "Be brief. Craft it.\n{{system_prompt}}"]
    assert summary(tmp_path / "0")["run"]["system_prompt"] == sent[0]
    assert run("data", "rl", "TextCraft", "--tasks", "0:4", *given, "--out", tmp_path / "rl").exit_code == 0
    rows = parquet.read_table(tmp_path / "rl/train.parquet").to_pylist()
    assert [row["prompt"] for row in rows] == [[{"role": "system", "content": sent[0]}]] * len(rows)
    refused_ones = {
        (*tiny, "--system-prompt", tmp_path / "none.txt"): "cannot read",
        ("eval", "TextCraft", "--agent", "random", *options, *given): "--system-prompt is only for models",
        (*tiny, *given, "--resume", "--out", tmp_path / "1"): "has a run with agent_settings",
    }
    for words, message in refused_ones.items():
        result = run(*words)
        assert result.exit_code == 2
        assert message in " ".join(result.stderr.split())


@pytest.mark.parametrize(
    ("env_id", "messages"),
    [
        ("Instructed", [{"role": "system", "content": Instructed.system_prompt}]),
        ("Count", []),
    ],
)
def test_the_prompt_of_a_model_matches_the_rows(run, tmp_path, model, env_id, messages):
    server, name = model(completion("4")), f"counting_env:bridge/{env_id}-v0"
    options = ("--base-url", f"{server.url}/v1", "--tasks", "3", "--max-turns", 1, "--out", tmp_path / "run")
    assert run("eval", name, "--model", "tiny", *options).exit_code == 0
    (request,) = asked(server)
    assert request["messages"] == [*messages, {"role": "user", "content": "Count from 0 to 3."}]
    kept = summary(tmp_path / "run")["run"]["system_prompt"]
    assert kept == (messages[0]["content"] if messages else None)
    assert run("data", "rl", name, "--tasks", "0:4", "--out", tmp_path / "rl").exit_code == 0
    rows = parquet.read_table(tmp_path / "rl/train.parquet").to_pylist()
    assert [drop_blank_system(row["prompt"]) for row in rows] == [messages] * len(rows)
    sft = ("data", "sft", tmp_path / "run", "--out", tmp_path / "sft", "--val", 0)
    assert run(*sft).exit_code == 0
    (row,) = parquet.read_table(tmp_path / "sft/train.parquet").to_pylist()
    assert row["messages"][:-2] == messages


def test_a_run_file_names_system_prompts(run, tmp_path, monkeypatch, textcraft_url, model):
    monkeypatch.chdir(tmp_path)
    server = model(completion("4"))
    Path("mine.txt").write_text("Mine.\n")
    Path("runs.toml").write_text(
        f"""
        out = "out"
        max_turns = 1
        tasks = "0"
        [[environments]]
        id = "counting_env:bridge/Instructed-v0"
        system_prompt = "mine.txt"
        [[environments]]
        id = "counting_env:bridge/Count-v0"
        [[agents]]
        model = "tiny"
        base_url = "{server.url}/v1"
        """
    )
    result = run("eval", "runs.toml")
    assert result.exit_code == 0, result.stderr
    sent = {tuple(message["content"] for message in request["messages"]) for request in asked(server)}
    assert sent == {("Mine.", "Count from 0 to 3."), ("Count from 0 to 3.",)}


def test_native_tools(run, tmp_path, textcraft_url, model):
    from fake_model import call

    server = model(completion(None, call("inventory", {})))
    result = run(
        *("eval", "TextCraft", "--model", "tiny", "--base-url", f"{server.url}/v1", "--tools", "native"),
        *("--server", textcraft_url, "--max-turns", 1, "--tasks", "0", "--out", tmp_path),
    )
    assert result.exit_code == 0, result.stderr
    assert summary(tmp_path)["run"]["options"]["action_format"] == "tool_calls"
    assert summary(tmp_path)["parse_errors"] == {}
    assert {tool["function"]["name"] for tool in asked(server)[0]["tools"]} == {"craft", "get", "inventory"}


def test_model_faults_are_not_zeros_and_are_retried_on_request(run, tmp_path, textcraft_url, model):
    say = completion("Action:\ninventory")
    server = model(refused("500 Oops"), say)
    more = ("--server", textcraft_url, "--max-turns", 1, "--tasks", "0:4", "--concurrency", 1)
    command = (
        "eval",
        "TextCraft",
        "--model",
        "m",
        "--base-url",
        f"{server.url}/v1",
        "--out",
        tmp_path,
        *more,
    )
    result = run(*command, "--retry-seconds", 0)
    assert result.exit_code == 0, result.stderr
    assert "1 ended by ModelError; not scored." in result.stdout
    assert (summary(tmp_path)["scored"], summary(tmp_path)["agent_faults"]) == (3, {"ModelError": 1})
    assert run(*command, "--resume").exit_code == 0
    assert summary(tmp_path)["scored"] == 3
    result = run(*command, "--resume", "--retry-faulted")
    assert (summary(tmp_path)["episodes"], summary(tmp_path)["scored"]) == (4, 4)


@pytest.mark.slow
def test_a_run_file_plays_each_agent_in_each_environment(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own_agents.py").write_text(
        "class Silent:\n"
        "    name = 'silent'\n"
        "    def reset(self, env, observation, info): pass\n"
        "    def act(self, observation, info): return None\n"
    )
    (tmp_path / "run.toml").write_text(
        'out = "both"\ntasks = "0:5"\nsamples = 2\nconcurrency = 4\n'
        '[[environments]]\nid = "TextCraft"\n'
        '[[environments]]\nid = "Maze"\ntasks = "1:3"\nmax_turns = 3\n'
        '[[agents]]\nagent = "oracle"\n'
        '[[agents]]\nagent = "own_agents:Silent"\nname = "nothing"\n'
    )
    result = run("eval", "run.toml")
    assert result.exit_code == 0, result.stderr
    names = ["Maze-v0-nothing", "Maze-v0-oracle", "TextCraft-v0-nothing", "TextCraft-v0-oracle"]
    assert sorted(path.name for path in (tmp_path / "both").iterdir()) == names
    assert [summary(tmp_path / "both" / name)["episodes"] for name in names] == [4, 4, 10, 10]
    assert summary(tmp_path / "both" / "TextCraft-v0-oracle")["pass_hat"]["2"] == 1.0
    assert "TextCraft-v0 (local world 3) by oracle" in result.stdout
    assert result.stdout.startswith("Success by environment and model:\n")
    rows = [line.split("  ") for line in result.stdout.splitlines()]
    cells = [[cell.strip() for cell in row if cell.strip()] for row in rows]
    assert ["environment", "split", "tasks", "oracle", "nothing"] in cells
    assert [row[2] for row in cells if row[:2] == ["Maze-v0 (local world 3)", "train"]] == ["2"]
    (head,) = (row for row in cells if row[:2] == ["model", "environment"])
    assert head[-3:] == ["turns", "parse errors", "wall time"]
    again = run("eval", "run.toml")
    assert (again.exit_code, "--resume" in again.stderr) == (2, True)
    assert run("eval", "run.toml", "--resume").exit_code == 0


SLOW_ORACLE = """
import asyncio, random
from agentgym_gym import find
from agentgym_gym.evaluate import load_oracle

class Slow:
    name = "slow"
    def __init__(self):
        self.oracle = load_oracle(find("TextCraft"))
    async def reset(self, env, observation, info):
        self.oracle.reset(env, observation, info)
    async def act(self, observation, info):
        await asyncio.sleep(random.random() / 20)
        return self.oracle.act(observation, info)
"""


@pytest.fixture
def slow_run(tmp_path, textcraft_url):
    (tmp_path / "slow_oracle.py").write_text(SLOW_ORACLE)

    def command(out, *more):
        words = [sys.executable, "-m", "agentgym_gym", "eval", "TextCraft", "--agent", "slow_oracle:Slow"]
        words += ["--tasks", "0:60", "--samples", "2", "--concurrency", "8", "--server", textcraft_url]
        return [*words, "--out", str(out), *more]

    def begin(out, *more):
        return programs.start(
            command(out, *more),
            cwd=tmp_path,
            env=programs.environment(),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )

    return begin


@pytest.mark.slow
def test_killed_at_random_moments_and_resumed_it_is_as_one_that_was_not(slow_run, tmp_path):
    with slow_run(tmp_path / "whole") as whole:
        assert whole.wait(120) == 0, whole.stderr.read()
    draw, kills = random.Random(1), 0  # noqa: S311 - not for secrets
    while kills < 4:
        kept = 0
        out = tmp_path / f"run{kills}"
        while True:
            with slow_run(out, "--resume") as process:
                episodes = out / "episodes.jsonl"
                while process.poll() is None and not episodes.exists():
                    time.sleep(0.005)
                time.sleep(draw.random() * 0.8)
                if process.poll() is None and kills < 4:
                    os.kill(process.pid, signal.SIGKILL)
                    kills += 1
                    process.wait(60)
                    lines = episodes.read_bytes().count(b"\n")
                    assert lines >= kept, "an episode was lost"
                    kept = lines
                    continue
                assert process.wait(120) == 0, process.stderr.read()
                break
        assert lasting(out) == lasting(tmp_path / "whole")
        lines = [json.loads(line) for line in (out / "episodes.jsonl").read_bytes().splitlines()]
        assert len({(line["task_id"], line["sample"]) for line in lines}) == len(lines) == 120


@pytest.mark.slow  # two processes
def test_two_runs_in_one_folder(slow_run, run, tmp_path, textcraft_url):
    out = tmp_path / "run"
    with slow_run(out) as process:
        while not (out / "summary.json").exists():
            assert process.poll() is None
            time.sleep(0.01)
        for more in ((), ("--resume",)):
            result = run(
                "eval", "TextCraft", "--agent", "oracle", "--server", textcraft_url, "--out", out, *more
            )
            assert result.exit_code == 2
            said = " ".join(result.stderr.split())
            assert f"another run (process {process.pid}) writes into {out}" in said.replace(" /", " /")
        process.kill()


def test_a_history_is_applied_recorded_and_compared(run, tmp_path, monkeypatch, textcraft_url, model):
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my_summaries.py").write_text(
        "def count(messages):\n    return f'Before: {len(messages)} messages.'\n", "utf-8"
    )
    usual = ("--server", textcraft_url, "--max-turns", 4, "--tasks", 0, "--model", "m")
    histories = {"all": (), "short": ("--history", "turns:1,summary:my_summaries:count")}
    servers = {name: model(completion("Action:\ninventory")) for name in histories}
    for name, history in histories.items():
        url = f"{servers[name].url}/v1"
        result = run("eval", "TextCraft", *usual, *history, "--base-url", url, "--out", tmp_path / name)
        assert result.exit_code == 0, result.stderr
    whole, short = ([each["messages"] for each in asked(server)] for server in servers.values())
    assert [len(each) for each in whole] == [2, 4, 6, 8]
    assert short[:2] == whole[:2]
    for number, (messages, complete) in enumerate(zip(short[2:], whole[2:], strict=True), start=1):
        system, first, *last = complete
        summarized = f"{first['content']}\n\nBefore: {2 * number} messages."
        assert messages == [system, {"role": "user", "content": summarized}, *last[-2:]]
    for name, omitted in (("all", [None] * 4), ("short", [None, None, 1, 2])):
        episode = json.loads((tmp_path / name / "episodes.jsonl").read_text("utf-8"))
        assert [step.get("omitted_turns") for step in episode["steps"]] == omitted
    compared = run("compare", tmp_path / "all", tmp_path / "short").stdout
    assert "the history differs: all in A, turns:1,summary:my_summaries:count in B." in compared


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ((), "set the environment variable NO_KEY, or give another server by --base-url"),
        (("--history", "some"), "--history='some' should be one of"),
        (("--history", "turns:1,summary:none:f"), "--history='turns:1,summary:none:f' has a function"),
        (("--sampling", '{"messages": []}'), "--sampling cannot set 'messages'"),
        (
            ("--sampling", '{"top_p": 1}', "--top-p", 0.5),
            "--top-p=0.5 is given in --sampling={'top_p': 1} too",
        ),
        (("--model-timeout", 0), "--model-timeout=0.0 should be a number of seconds"),
        (("--env-timeout", 5), "--env-timeout=5.0 is not for agentgym/TextCraft-v0"),
        (("--env-timeout", 5), "give --timeout=SECONDS instead"),
        (("--base-url", "URL"), "URL: cannot connect: Connection refused; start it"),
    ],
)
def test_an_error_names_the_options_of_the_command(run, tmp_path, unreachable_url, options, message):
    options = [unreachable_url if word == "URL" else word for word in options]
    usual = ("--model", "tiny", "--api-key-variable", "NO_KEY", "--tasks", 0)
    result = run("eval", "TextCraft", *usual, *options, "--out", tmp_path / "run")
    assert result.exit_code == 2
    assert message.replace("URL", unreachable_url) in result.stderr
    assert not (tmp_path / "run").exists()


def test_an_engine_without_its_python_names_the_option(run, tmp_path):
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "model.safetensors").touch()
    launch = ("--launch", "vllm", "--model-path", tmp_path, "--engine-python")
    result = run("eval", "TextCraft", *launch, tmp_path / "python", "--out", tmp_path / "run")
    assert f"--engine-python='{tmp_path}/python' cannot be run" in result.stderr
    result = run("eval", "TextCraft", *launch, sys.executable, "--out", tmp_path / "run")
    assert "lacks vllm" in result.stderr
    assert "--engine-python" in result.stderr


def refuses_temperature(request):
    if "temperature" in request.json:
        return 400, {
            "error": {"message": "temperature is not supported with this model", "param": "temperature"}
        }
    return completion("Action:\ninventory")


def test_a_refused_field_is_printed_once_for_all_runs_of_a_model(run, tmp_path, monkeypatch, started):
    monkeypatch.chdir(tmp_path)
    server = started(FakeServer(refuses_temperature))
    environments = "".join(
        f'[[environments]]\nid = "counting_env:bridge/{name}-v0"\n' for name in ("Count", "Instructed")
    )
    agent = f'[[agents]]\nmodel = "tiny"\nbase_url = "{server.url}/v1"\ntemperature = 0.0\n'
    Path("runs.toml").write_text(f'out = "out"\nmax_turns = 1\ntasks = "0:3"\n{environments}{agent}')
    result = run("eval", "runs.toml")
    assert result.exit_code == 0, result.stderr
    change = "temperature=0.0 is not sent"
    assert result.stderr.count(change) == 1
    for folder in (tmp_path / "out").iterdir():
        assert summary(folder)["run"]["model_server"]["refused"] == [change]
    assert len([sent for sent in asked(server) if "temperature" in sent]) <= 16


def test_a_refused_setting_changes_the_protocol_of_the_run(run, tmp_path, textcraft_url, started):
    answers = {"refused": refuses_temperature, "greedy": in_turn(completion("a"))}
    usual = ("--protocol", "quick", "--server", textcraft_url, "--max-turns", 1, "--model", "m")
    for name, answer in answers.items():
        url = f"{started(FakeServer(answer)).url}/v1"
        command = ("eval", "TextCraft", *usual, "--base-url", url, "--out", tmp_path / name)
        assert run(*command, "--positions", "0:2").exit_code == 0
        assert run(*command, "--positions", "0:2", "--resume").exit_code == 0  # nothing is left to play
    table = " ".join(run("table", tmp_path / "refused", tmp_path / "greedy").stdout.split())
    assert "the server refused: temperature=0 is not sent" in table
    compared = run("compare", tmp_path / "greedy", tmp_path / "refused").stdout
    assert "what the model server refused differs: nothing in A, temperature=0 is not sent in B" in compared


def test_a_resumed_run_knows_that_its_server_accepted_requests(run, tmp_path, textcraft_url, started):
    """A conversation that is rejected at its first turn is then no reason to end the run."""
    bad = {"error": {"message": "this conversation is bad"}}
    server = started(FakeServer(in_turn(completion("a"), (400, bad), (400, bad), completion("a"))))
    usual = ("--server", textcraft_url, "--max-turns", 1, "--concurrency", 1, "--out", tmp_path / "run")
    command = ("eval", "TextCraft", "--model", "m", "--base-url", f"{server.url}/v1", *usual)
    assert run(*command, "--tasks", "0:1").exit_code == 0
    result = run(*command, "--tasks", "0:3", "--resume")
    assert result.exit_code == 0, result.stderr
    assert summary(tmp_path / "run")["agent_faults"] == {"ConversationRejected": 1}
