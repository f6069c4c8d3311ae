"""`agentgym eval`: the choice of tasks, the confirmation of long runs, and the dry run."""

import json
import os
import pty
import re

import pytest

from agentgym_gym import find
from agentgym_gym.rollout import EpisodeRecord
from fake_model import asked, completion
from fake_server import FakeServer, in_turn
from inside import estimate, limit_unasked

TEST = find("TextCraft").split("test")
TRAIN = find("TextCraft").split("train")


@pytest.fixture
def play(run, tmp_path, textcraft_url):
    """Plays tasks one after another; returns their ids, the recorded selection and the output."""

    def evaluate(*options, out="run"):
        usual = ("--agent", "random", "--max-turns", 1, "--concurrency", 1, "--server", textcraft_url)
        result = run("eval", "TextCraft", *usual, *options, "--out", tmp_path / out)
        assert result.exit_code == 0, result.stderr
        episodes = (tmp_path / out / "episodes.jsonl").read_text("utf-8").splitlines()
        summary = json.loads((tmp_path / out / "summary.json").read_text("utf-8"))
        return [json.loads(line)["task_id"] for line in episodes], summary["run"]["selection"], result.stdout

    return evaluate


@pytest.mark.parametrize(
    ("options", "tasks", "text"),
    [
        ((), TEST, "91 tasks, split test"),
        (("--limit", 3), TEST[:3], "The first 3 of 91 tasks, split test"),
        pytest.param(("--limit", 500), TEST, "91 tasks, split test", marks=pytest.mark.slow),
        (("--split", "train", "--limit", 2), TRAIN[:2], "The first 2 of 440 tasks, split train"),
        (("--positions", "0:5"), TEST[:5], "5 tasks, at the positions 0:5, split test"),
        (
            ("--split", "train", "--positions", "7,1", "--limit", 1),
            [TRAIN[7]],
            "The first 1 of 2 tasks, at the positions 7,1, split train",
        ),
        (
            ("--sample", 4),
            find("TextCraft").sample_tasks(4, split="test"),
            "4 of 91 tasks, drawn with seed 0, split test",
        ),
        (
            ("--sample", 3, "--seed", 5),
            find("TextCraft").sample_tasks(3, 5, "test"),
            "3 of 91 tasks, drawn with seed 5, split test",
        ),
        (("--tasks", "0:3"), [0, 1, 2], "3 tasks, split train"),
        (
            ("--tasks", f"{TEST[0]},{TRAIN[0]}"),
            [TEST[0], TRAIN[0]],
            "2 tasks (1 of split train, 1 of split test)",
        ),
    ],
)
def test_the_tasks_of_a_run(play, options, tasks, text):
    played, facts, printed = play(*options)
    assert played == list(tasks)
    assert f"\n{text}.\n" in printed
    assert facts["count"] == len(tasks) == sum(facts["by_split"].values())


def test_a_sample_depends_only_on_the_seed(play):
    first, facts, _ = play("--sample", 10, "--seed", 3)
    assert facts["seed"] == 3
    assert play("--sample", 10, "--seed", 3, out="again")[0] == first
    assert play("--sample", 20, "--seed", 3, out="more")[0][:10] == first
    assert play("--sample", 10, "--seed", 4, out="other")[0] != first


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


def test_a_long_run_of_a_model_needs_a_confirmation(run, tmp_path, monkeypatch, model):
    long = (*LONG, "--model", "tiny", "--base-url", f"{model.url}/v1", "--out", tmp_path / "run")
    result = run(*long)
    assert result.exit_code == 2
    assert "1,001 episodes of a model" in result.stderr
    assert "--yes" in result.stderr
    assert "--limit" in result.stderr
    assert not (tmp_path / "run").exists()
    assert model.connections == 0
    limit_unasked(monkeypatch, 3)
    assert run(*long, "--limit", 3).exit_code == 0
    assert len(asked(model)) == 3
    more = run(*long, "--limit", 4, "--samples", 2, "--resume")
    assert (more.exit_code, "5 episodes" in more.stderr) == (2, True)
    assert run(*long, "--limit", 7, "--yes", "--resume").exit_code == 0
    assert len(asked(model)) == 7


def test_agents_without_a_model_need_no_confirmation(run, tmp_path, monkeypatch):
    limit_unasked(monkeypatch, 3)
    result = run(*LONG, "--limit", 4, "--agent", "random", "--out", tmp_path)
    assert result.exit_code == 0, result.stderr


@pytest.mark.parametrize(("answer", "episodes"), [("n\n", 0), ("y\n", 4)])
def test_a_terminal_confirms_a_long_run(run, tmp_path, monkeypatch, model, answer, episodes):
    limit_unasked(monkeypatch, 3)
    main, terminal = pty.openpty()
    options = ("--model", "tiny", "--base-url", f"{model.url}/v1", "--out", tmp_path / "run")
    with os.fdopen(main, "wb", buffering=0) as keyboard, os.fdopen(terminal) as stdin:
        keyboard.write(answer.encode())
        result = run(*LONG, "--limit", 4, *options, input=stdin)
    assert "4 episodes of a model. Play them all?" in result.stderr
    assert (result.exit_code == 0) == bool(episodes)
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


@pytest.mark.parametrize(
    "more",
    [
        (),
        ("--history", "turns:1"),
        ("--history", "turns:1,summary:counting_env:summarize"),
        ("--tools", "native"),
    ],
    ids=str,
)
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


def test_the_estimate_has_no_summary_of_an_environment(run, model, textcraft_url):
    usual = ("--server", textcraft_url, "--tasks", TEST[0], "--model", "m", "--base-url", f"{model.url}/v1")
    shortened = tokens(run("eval", "TextCraft", *usual, "--history", "turns:1", "--dry-run"))
    summarized = run("eval", "TextCraft", *usual, "--history", "turns:1,summary", "--dry-run")
    assert tokens(summarized) == shortened
    assert "summaries by the environment add to this" in " ".join(summarized.stdout.split())


def test_a_dry_run_without_an_oracle(run, tmp_path, model):
    result = run(*LONG, "--model", "tiny", "--base-url", f"{model.url}/v1", "--out", tmp_path, "--dry-run")
    assert result.exit_code == 0, result.stderr
    assert "1,001 episodes (1001 seeds)" in result.stdout
    assert "tokens and cost: unknown, because no oracle plays this environment" in result.stdout
