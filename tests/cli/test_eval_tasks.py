"""`agentgym eval`: the choice of tasks, the confirmation of long runs, and the dry run."""

import json
import os
import pty
import re
import subprocess
import sys

import pytest

import programs
from agentgym_gym import find
from agentgym_gym._cli.environments import PlannedEnvironment
from agentgym_gym._cli.plans import EnvironmentPlan
from agentgym_gym.errors import BadOption
from agentgym_gym.rollout import EpisodeRecord
from fake_model import asked, completion
from fake_server import FakeServer, in_turn
from inside import estimate

TEST = find("TextCraft").split("test")
TRAIN = find("TextCraft").split("train")


def selection(name="TextCraft", seed=0, **options):
    return PlannedEnvironment(EnvironmentPlan(name, **options), {}, seed=seed).selection


@pytest.mark.parametrize(
    ("options", "tasks", "text"),
    [
        ({}, TEST, "91 tasks, split test"),
        ({"limit": 3}, TEST[:3], "the first 3 of 91 tasks, split test"),
        ({"limit": 500}, TEST, "91 tasks, split test"),
        ({"split": "train", "limit": 2}, TRAIN[:2], "the first 2 of 440 tasks, split train"),
        ({"positions": "0:5"}, TEST[:5], "5 tasks, at the positions 0:5, split test"),
        (
            {"split": "train", "positions": "7,1", "limit": 1},
            [TRAIN[7]],
            "the first 1 of 2 tasks, at the positions 7,1, split train",
        ),
        (
            {"sample": 4},
            find("TextCraft").sample_tasks(4, split="test"),
            "4 of 91 tasks, drawn with seed 0, split test",
        ),
        ({"tasks": "0:3"}, [0, 1, 2], "3 tasks, split train"),
        (
            {"tasks": f"{TEST[0]},{TRAIN[0]}"},
            [TEST[0], TRAIN[0]],
            "2 tasks (1 of split train, 1 of split test)",
        ),
    ],
)
def test_the_tasks_of_a_plan(options, tasks, text):
    chosen = selection(**options)
    assert (list(chosen.tasks), chosen.text) == (list(tasks), text)
    assert chosen.facts["count"] == len(tasks) == sum(chosen.facts["by_split"].values())


def test_a_sample_depends_on_the_seed_alone():
    first = selection(sample=10, seed=3)
    assert first.tasks == selection(sample=10, seed=3).tasks != selection(sample=10, seed=4).tasks
    assert selection(sample=20, seed=3).tasks[:10] == first.tasks
    assert first.facts["seed"] == 3


def test_seeds_of_another_library():
    chosen = selection("counting_env:bridge/Count-v0", limit=5)
    assert (chosen.tasks, chosen.text) == ([0, 1, 2, 3, 4], "the first 5 of 1000 seeds")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"limit": 2, "sample": 2}, "limit=2 and sample=2 exclude each other"),
        ({"tasks": "0:5", "positions": "0:5"}, "positions='0:5' are positions in a split"),
        ({"split": "test", "tasks": "0:5"}, "for positions in the split, pass positions='0:5'"),
        ({"positions": "90:92"}, "positions='90:92' are not among those there are, 0 to 90"),
        ({"sample": 92}, "sample=92 should be a number from 1 to 91"),
        ({"limit": 0}, "limit=0 should be 1 or more"),
    ],
)
def test_tasks_that_cannot_be_chosen(options, message):
    with pytest.raises(BadOption, match=message.replace("(", r"\(")):
        selection(**options)


def test_the_split_is_recorded_and_shown(run, tmp_path, textcraft_url):
    options = ("--server", textcraft_url, "--agent", "oracle", "--out", tmp_path)
    result = run("eval", "TextCraft", *options, "--sample", 3, "--seed", 5)
    assert result.exit_code == 0, result.stderr
    assert "\n3 of 91 tasks, drawn with seed 5, split test.\n" in result.stdout
    written = json.loads((tmp_path / "summary.json").read_text("utf-8"))["run"]
    assert written["selection"]["by_split"] == {"test": 3}
    records = [json.loads(line) for line in (tmp_path / "episodes.jsonl").read_text("utf-8").splitlines()]
    assert {record["task_id"] for record in records} == set(find("TextCraft").sample_tasks(3, 5, "test"))


def test_a_run_file_chooses_tasks(run, tmp_path, textcraft_url):
    (tmp_path / "run.toml").write_text(
        f"""
        out = "{tmp_path / "out"}"
        limit = 2
        [[environments]]
        id = "TextCraft"
        server = "{textcraft_url}"
        [[environments]]
        id = "counting_env:bridge/Count-v0"
        limit = 1
        [[agents]]
        agent = "random"
        """
    )
    result = run("eval", tmp_path / "run.toml")
    assert result.exit_code == 0, result.stderr
    assert "TextCraft-v0 by random: The first 2 of 91 tasks, split test." in result.stdout
    assert "Count-v0 by random: The first 1 of 1000 seeds." in result.stdout


LONG = ("eval", "counting_env:bridge/Count-v0", "--tasks", "0:1001", "--max-turns", 1)


@pytest.fixture
def model(started):
    return started(FakeServer(in_turn(completion("4"))))


@pytest.mark.slow
def test_a_long_run_of_a_model_needs_a_confirmation(run, tmp_path, model):
    long = (*LONG, "--model", "tiny", "--base-url", f"{model.url}/v1", "--out", tmp_path / "run")
    result = run(*long)
    assert result.exit_code == 2
    assert "1,001 episodes of a model" in result.stderr
    assert "--yes" in result.stderr
    assert "--limit" in result.stderr
    assert not (tmp_path / "run").exists()
    assert model.connections == 0
    assert run(*long, "--limit", 3).exit_code == 0
    assert len(asked(model)) == 3
    more = run(*long, "--limit", 1000, "--samples", 2, "--resume")
    assert (more.exit_code, "1,997 episodes" in more.stderr) == (2, True)
    assert run(*long, "--yes", "--resume").exit_code == 0
    assert len(asked(model)) == 1001


@pytest.mark.slow
def test_agents_without_a_model_need_no_confirmation(run, tmp_path):
    result = run(*LONG, "--agent", "random", "--out", tmp_path)
    assert result.exit_code == 0, result.stderr


@pytest.mark.slow
@pytest.mark.parametrize(("answer", "episodes"), [("n\n", 0), ("y\n", 1001)])
def test_a_terminal_confirms_a_long_run(tmp_path, model, answer, episodes):
    main, terminal = pty.openpty()
    options = ("--model", "tiny", "--base-url", f"{model.url}/v1", "--out", str(tmp_path / "run"))
    process = programs.start(
        [sys.executable, "-m", "agentgym_gym", *map(str, LONG), *options],
        stdin=terminal,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=programs.environment(),
    )
    os.write(main, answer.encode())
    output, _ = process.communicate(timeout=300)
    os.close(terminal)
    os.close(main)
    assert b"This run has 1,001 episodes of a model. Play them all?" in output
    assert (process.returncode == 0) == bool(episodes)
    assert len(asked(model)) == episodes


TOKENS = re.compile(r"tokens: about ([\d,]+) in prompts and ([\d,]+) in replies")


def tokens(result):
    """Return the estimated tokens of prompts and of replies."""
    assert result.exit_code == 0, result.stderr
    return tuple(int(number.replace(",", "")) for number in TOKENS.search(result.stdout).groups())


def test_a_dry_run_writes_nothing_and_sends_nothing_to_a_model(
    run, tmp_path, monkeypatch, textcraft_url, model
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "prices.toml").write_text("[tiny]\ninput = 1000.0\noutput = 2000.0\n")
    tiny = ("--model", "tiny", "--base-url", f"{model.url}/v1", "--server", textcraft_url, "--limit", 12)
    once = run("eval", "TextCraft", *tiny, "--prices", "prices.toml", "--dry-run")
    assert "TextCraft-v0 by tiny: 12 episodes (the first 12 of 91 tasks, split test)" in once.stdout
    assert "mean of 10 episodes" in once.stdout
    prompt, reply = tokens(once)
    assert f"cost: about {prompt / 1000 + reply / 500:.2f}" in once.stdout
    twice = tokens(run("eval", "TextCraft", *tiny, "--samples", 2, "--dry-run"))
    assert [each / 2 for each in twice] == pytest.approx([prompt, reply], abs=1)
    assert model.connections == 0
    assert [path.name for path in tmp_path.iterdir()] == ["prices.toml"]


@pytest.mark.parametrize("more", [(), ("--history", "turns:1"), ("--tools", "native")], ids=str)
def test_the_estimate_is_the_size_of_the_requests(run, started, tmp_path, textcraft_url, more):
    """A model that replies like the oracle receives the messages that the estimate counts."""
    usual = ("--server", textcraft_url, "--tasks", TEST[0])
    played = ("--agent", "oracle", "--out", tmp_path / "oracle")
    formats = ("--action-format", "tool_calls") if "native" in more else ()
    assert run("eval", "TextCraft", *usual, *played, *formats).exit_code == 0
    record = EpisodeRecord.from_json(json.loads((tmp_path / "oracle/episodes.jsonl").read_text("utf-8")))
    model = started(FakeServer(in_turn(*(completion(reply) for reply in record.replies))))
    command = ("eval", "TextCraft", *usual, "--model", "m", "--base-url", f"{model.url}/v1", *more)
    prompt, reply = tokens(run(*command, "--dry-run"))
    assert model.connections == 0
    assert run(*command, "--out", tmp_path / "model").exit_code == 0
    sent = asked(model)
    assert len(sent) == record.turns > 1
    tools = [
        estimate([{"role": "system", "content": json.dumps(each["tools"])}])
        for each in sent
        if more[1:] == ("native",)
    ]
    assert prompt == sum(estimate(each["messages"]) for each in sent) + sum(tools)
    assert reply == sum(estimate([{"role": "assistant", "content": text}]) for text in record.replies)


def test_a_dry_run_without_an_oracle(run, tmp_path, model):
    result = run(*LONG, "--model", "tiny", "--base-url", f"{model.url}/v1", "--out", tmp_path, "--dry-run")
    assert result.exit_code == 0, result.stderr
    assert "1,001 episodes (1001 seeds)" in result.stdout
    assert "tokens and cost: unknown, because no oracle plays this environment" in result.stdout
