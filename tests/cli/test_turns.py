"""`agentgym data sft --history`: a row for each turn, with the messages that a model is sent at that turn."""

from __future__ import annotations

import contextlib
import json
from itertools import pairwise
from pathlib import Path

import gymnasium
import pytest

import needs
from agentgym_gym.data import read_trajectories, sft_rows
from agentgym_gym.errors import BadOption
from agentgym_gym.evaluate import ChatAgent, ChatPrompt, RunFolder, evaluate, read_run
from fake_model import asked, call, completion
from fake_server import FakeServer
from trajectories import ENTRY, FACTS, PROMPT, episode

pytest.importorskip("pyarrow.parquet", reason=needs.reason("pyarrow.parquet"))

FUNCTION = "summary:counting_env:summarize"
THINKING = [
    "<think>I have nothing.</think>Thought:\nI look.\n\nAction:\ninventory",
    "what?",
    "I wonder.</think>Action: inventory",
    "Action: get 1 oak log",
    "<think>never closed",
    "Action: inventory",
]


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def requests_of(record, url, answers, **options):
    """Play a task with the given completions; return the messages of each request to the model."""
    limits = {"max_episode_steps": len(answers), "disable_env_checker": True}
    env = gymnasium.make(record.env_id, server=url, **limits)
    with FakeServer(Model(answers)) as server, contextlib.closing(env):
        agent = ChatAgent("m", base_url=f"{server.url}/v1", retry_seconds=0, **options)
        (played,) = evaluate(env, agent, [record.task_id])
        assert (played.fault, played.agent_fault) == (None, None)
        return [request["messages"] for request in asked(server)]


class Model:
    """Replies with completions in turn, and counts a token for each character of a request."""

    def __init__(self, answers):
        self.answers = list(answers)

    def __call__(self, request):
        size = sum(len(each["content"]) for each in request.json["messages"])
        content, *calls = self.answers.pop(0)
        return completion(content, *calls, usage={"prompt_tokens": 50 + size, "completion_tokens": 1})


def play_model(run, url, answers, *more):
    """Play a task by `agentgym eval` with the completions of a model; return its record."""
    with FakeServer(Model(answers)) as model:
        arguments = ("--model", "m", "--base-url", f"{model.url}/v1", "--max-turns", len(answers), *more)
        result = run(
            *("eval", "TextCraft", "--split", "train", "--limit", 1, "--server", url, "--out", "run"),
            *arguments,
            env={"OPENAI_API_KEY": "none"},
        )
    assert result.exit_code == 0, result.stderr
    (record,) = read_run(Path("run")).records
    return record


def rows_of(write_data, *arguments):
    rows, summary = write_data("sft", "run", "--val", 0, "--force", *arguments)
    return sorted(rows["train"], key=lambda row: (row["task_id"], turn_of(row))), summary


def turn_of(row):
    return json.loads(row["rest"])["extra"]["turn"]


@pytest.mark.parametrize("history", ["turns:1", "turns:3", f"turns:2,{FUNCTION}"])
def test_each_turn_of_an_oracles_game_has_the_messages_of_an_evaluation(
    run, write_data, textcraft_url, history
):
    options = ("--split", "train", "--limit", 3, "--server", textcraft_url)
    assert run("eval", "TextCraft", "--agent", "oracle", *options, "--out", "run").exit_code == 0
    rows, summary = rows_of(write_data, "--history", history)
    expected = []
    for record in sorted(read_run(Path("run")).records, key=lambda each: each.task_id):
        replies = [each["content"] for each in record.messages if each["role"] == "assistant"]
        answers = [(reply,) for reply in replies]
        for sent, reply in zip(
            requests_of(record, textcraft_url, answers, history=history), replies, strict=True
        ):
            expected.append([*sent, {"role": "assistant", "content": reply}])
    assert [row["messages"] for row in rows] == expected
    assert max(len(each) for each in expected) > 4
    assert summary["history"] == history
    assert len(rows) == summary["rows"]["train"]
    assert {json.loads(row["rest"])["extra"]["history"] for row in rows} == {history}
    for row in rows:
        marks = [
            mark
            for mark, each in zip(row["loss"], row["messages"], strict=True)
            if each["role"] == "assistant"
        ]
        assert marks == [False] * (len(marks) - 1) + [True]


@pytest.mark.parametrize(
    "history", ["turns:1", "turns:2", "tokens:1700", "turns:3,tokens:1650", f"turns:1,{FUNCTION}"]
)
def test_earlier_replies_of_a_thinking_model_have_no_thoughts(run, write_data, textcraft_url, history):
    answers = [(reply,) for reply in THINKING]
    record = play_model(run, textcraft_url, answers)
    rows, _ = rows_of(write_data, "--history", history)
    sent = requests_of(record, textcraft_url, answers, history=history)[: len(rows)]
    assert [row["messages"][:-1] for row in rows] == sent
    assert [row["messages"][-1]["content"] for row in rows] == THINKING
    assert any(len(after) <= len(before) for before, after in pairwise(sent))  # it omits a turn


def test_a_token_budget_of_the_run_itself(run, write_data, textcraft_url):
    history, answers = f"tokens:1700,{FUNCTION}", [(reply,) for reply in THINKING]
    record = play_model(run, textcraft_url, answers, "--history", history)
    rows, _ = rows_of(write_data, "--history", history)
    sent = requests_of(record, textcraft_url, answers, history=history)
    assert [row["messages"][:-1] for row in rows] == sent[: len(rows)]
    assert [step.get("omitted_turns", 0) for step in record.steps][-1] > 0
    refused = run("data", "sft", "run", "--history", "tokens:1650", "--out", "other")
    assert refused.exit_code == 2
    assert "play with tokens:1650" in refused.stderr


def test_function_calls_are_text_as_without_native_calls(run, write_data, textcraft_url):
    answers = [
        ("<think>unclosed", call("inventory", {}, "a")),
        ("Look.", call("inventory", {}, "b"), call("get", {"item": "log"}, "c")),
        ("", call("inventory", {}, "d")),
    ]
    record = play_model(run, textcraft_url, answers)
    rows, _ = rows_of(write_data, "--history", "turns:2")
    sent = requests_of(record, textcraft_url, answers, history="turns:2")
    assert [row["messages"][:-1] for row in rows] == sent[: len(rows)]
    assert len(rows) == 3


@pytest.mark.parametrize("system", ["Please.", ""])
def test_examples_of_a_prompt_stay_and_are_not_trained_on(run, write_data, textcraft_url, system):
    examples = [{"role": "user", "content": "o"}, {"role": "assistant", "content": "r"}]
    prompt = [*([{"role": "system", "content": system}] if system else []), *examples]
    Path("prompt.json").write_text(
        json.dumps(prompt if system else [{"role": "system", "content": ""}, *examples])
    )
    answers = [(reply,) for reply in THINKING]
    record = play_model(run, textcraft_url, answers, "--prompt", "prompt.json")
    rows, _ = rows_of(write_data, "--history", "turns:1")
    sent = requests_of(
        record, textcraft_url, answers, history="turns:1", prompt=ChatPrompt(system, tuple(examples))
    )
    assert [row["messages"][:-1] for row in rows] == sent
    assert all(False not in row["loss"][-1:] and True not in row["loss"][:-1] for row in rows)
    again = read_trajectories(Path("out"))
    assert [[each.content for each in read.messages] for read in again] == [
        [each["content"] for each in row["messages"]] for row in parquet_rows()
    ]
    summary = json.loads(run("data", "sft", "out", "--val", 0, "--out", "copy", "--json").stdout)
    assert summary["rows"]["train"] == len(rows)
    assert sorted(map(str, parquet_rows("copy"))) == sorted(map(str, parquet_rows()))


def parquet_rows(folder="out"):
    import pyarrow.parquet

    return pyarrow.parquet.read_table(f"{folder}/train.parquet").to_pylist()


def two_turns(**fields):
    texts = ("Walls.", "Action:\nmove up", "A wall.", "Action:\nmove left", "Success")
    roles = ("user", "assistant") * 3
    messages = tuple({"role": role, "content": text} for role, text in zip(roles, texts, strict=False))
    return episode(3, messages=messages, turns=2, steps=({}, {}), rewards=(0.0, 1.0), **fields)


def test_the_prompt_of_agentgym_as_turns_survives_a_history(run, write_data):
    with RunFolder(Path("run"), FACTS) as folder:
        folder.add(two_turns())
    rows, summary = rows_of(write_data, "--history", "turns:1", "--prompt", "turns")
    assert [[each["content"] for each in row["messages"][:3]] for row in rows] == [
        [PROMPT, "OK.", "Walls."]
    ] * 2
    assert [row["loss"] for row in rows] == [
        [None, False, None, True],
        [None, False, None, False, None, True],
    ]
    assert summary["replies_without_loss"] == 3
    back = json.loads(run("data", "sft", "out", "--val", 0, "--out", "copy", "--json").stdout)
    assert back["rows"]["train"] == 2
    assert {row["messages"][0]["role"] for row in parquet_rows("copy")} == {"system"}


def test_the_first_turn_is_no_prompt_when_there_is_no_system_message(run, write_data):
    with RunFolder(Path("run"), {**FACTS, "system_prompt": None}) as folder:
        folder.add(two_turns())
    rows_of(write_data, "--history", "turns:1")
    assert run("data", "sft", "out", "--val", 0, "--out", "copy").exit_code == 0
    assert {row["messages"][0]["role"] for row in parquet_rows("copy")} == {"user"}


def test_agentgyms_trajectories_have_turns_too(write_data):
    talk = ENTRY["conversations"]
    longer = {
        **ENTRY,
        "conversations": [*talk, {"from": "gpt", "loss": False, "value": "Hm."}, talk[2], talk[3]],
    }
    Path("run").write_text(json.dumps([longer]))
    Path("run").rename("run.json")
    rows, _ = write_data("sft", "run.json", "--val", 0, "--history", "turns:1")
    assert [turn_of(row) for row in rows["train"]] == [1, 3]  # the second reply is not to be trained on
    assert [each["role"] for each in rows["train"][1]["messages"]] == [
        *("system", "user"),
        *("assistant", "user", "assistant"),
    ]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--history", "turns:0"), "whole number from 1"),
        (("--history", "turns:2,summary"), "not recorded"),
        (("--history", "turns:2,summary:counting_env:nothing"), "cannot be imported"),
        (("--history", "tokens:500"), "no token counts"),
    ],
)
def test_a_policy_that_cannot_be_applied_is_refused(run, arguments, said):
    with RunFolder(Path("run"), FACTS) as folder:
        folder.add(two_turns())
    refused = run("data", "sft", "run", "--val", 0, *arguments, "--out", "out")
    assert (refused.exit_code, Path("out").exists()) == (2, False)
    assert "--history" in refused.stderr
    assert said in refused.stderr


def test_turns_are_not_divided_again_or_compared_as_episodes(run, write_data):
    with RunFolder(Path("run"), FACTS) as folder:
        folder.add(two_turns())
    rows_of(write_data, "--history", "turns:1")
    other = run("data", "sft", "out", "--val", 0, "--history", "turns:2", "--out", "copy")
    assert "a turn with the history turns:1" in other.stderr
    best = run("data", "sft", "out", "--val", 0, "--best", 1, "--out", "copy")
    assert "--best" in best.stderr
    assert not Path("copy").exists()
    same = run("data", "sft", "out", "--val", 0, "--history", "turns:1", "--out", "copy")
    assert same.exit_code == 0, same.stderr
    assert sorted(map(str, parquet_rows("copy"))) == sorted(map(str, parquet_rows()))


def test_another_prompt_makes_token_counts_useless(run, textcraft_url):
    play_model(run, textcraft_url, [(reply,) for reply in THINKING])
    Path("short.txt").write_text("Play.")
    refused = run(
        *("data", "sft", "run", "--val", 0, "--history", "tokens:1700"),
        *("--system-prompt", "short.txt", "--out", "out"),
    )
    assert "no token counts" in refused.stderr


def test_rows_from_python_take_the_same_policy(run, write_data):
    with RunFolder(Path("run"), FACTS) as folder:
        folder.add(two_turns())
    rows, _ = rows_of(write_data, "--history", "turns:1")
    trajectories = read_trajectories(Path("run"))
    assert sorted(map(str, sft_rows(trajectories, history="turns:1"))) == sorted(map(str, rows))
    with pytest.raises(BadOption, match="one of 'all'"):
        list(sft_rows(trajectories, history="some"))
