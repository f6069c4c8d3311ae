"""`agentgym data sft`, `agentgym data agenttraj` and `agentgym data reformat`."""

from __future__ import annotations

import functools
import json
import re
import shlex
from pathlib import Path

import pytest

import needs
from agentgym_gym.data import read_trajectories
from agentgym_gym.evaluate import RunFolder
from fake_model import completion
from fake_server import FakeServer
from trajectories import ENTRY, FACTS, PROMPT, episode

parquet = pytest.importorskip("pyarrow.parquet", reason=needs.reason("pyarrow.parquet"))

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "trajectories.md").read_text("utf-8")


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def sft(write_data):
    return functools.partial(write_data, "sft")


def keep(name, *records, **facts):
    with RunFolder(Path(name), FACTS | facts) as folder:
        for record in records:
            folder.add(record)


def save(name, *entries):
    Path(name).write_text(json.dumps(entries))


def test_sources_of_each_kind_are_put_together(run, sft):
    keep("run", episode(0), episode(1), episode(2, fault={"kind": "ServerError"}, score=None, success=None))
    save("traj.json", ENTRY, ENTRY)
    assert run("data", "sft", "run", "--val", 0, "--out", "first").exit_code == 0
    keep("other", episode(0, "Action:\nmove left", score=0.0, success=False))
    rows, told = sft("first", "run", "traj.json", "other", "--val", 0)
    assert told["left_out"] == {"ended by ServerError": 1, "duplicate": 3}
    assert {(row["task_id"], row["score"]) for row in rows["train"]} == {
        (0, 1.0),
        (0, 0.0),
        (1, 1.0),
        (3, None),
    }
    assert {row["messages"][0]["role"] for row in rows["train"]} == {"system"}
    assert (told["replies"], told["replies_without_loss"]) == (4, 0)
    assert told["environments"] == {"agentgym/Maze-v0": {"tasks": 3, "train": 4, "val": 0}}


def test_no_task_is_in_both_files(sft):
    keep("run", *(episode(task, sample=sample, said=f"{sample}") for task in range(5) for sample in range(3)))
    rows, _ = sft("run", "--val", 2)
    tasks = {part: {row["task_id"] for row in each} for part, each in rows.items()}
    assert (len(rows["train"]), len(rows["val"]), len(tasks["val"])) == (9, 6, 2)
    assert tasks["train"] | tasks["val"] == set(range(5))
    assert not tasks["train"] & tasks["val"]


def test_selection_by_success_and_by_score(sft, run):
    keep(
        "run",
        episode(0, score=0.25, success=False),
        episode(0, sample=1, said="b", score=0.5, success=False),
        episode(1, said="c"),
    )
    rows, told = sft("run", "--successful", "--val", 0)
    assert ([row["task_id"] for row in rows["train"]], told["left_out"]) == ([1], {"not successful": 2})
    rows, told = sft("run", "--min-score", 0.5, "--val", 0, "--force")
    assert ({row["score"] for row in rows["train"]}, told["left_out"]) == ({0.5, 1.0}, {"score below 0.5": 1})
    rows, told = sft("run", "--best", 1, "--val", 0, "--force")
    assert {row["score"] for row in rows["train"]} == {0.5, 1.0}
    printed = run("data", "sft", "run", "--best", 1, "--val", 0, "--out", "out", "--force").stdout
    assert "Left out, not among the best 1 of its task: 1." in printed
    assert "2 rows for training and 0 for validation, of 2 replies" in printed


def test_the_prompt_of_agentgym_as_turns(run, sft):
    save("traj.json", ENTRY)
    keep("run", episode(0))
    rows, told = sft("traj.json", "run", "--prompt", "turns", "--val", 0)
    first = [[each["content"] for each in row["messages"][:2]] for row in sorted(rows["train"], key=by_task)]
    assert first == [[PROMPT, "OK."], [PROMPT, "Ok."]]
    assert [row["loss"][:2] for row in rows["train"]] == [[None, False]] * 2
    assert told["replies_without_loss"] == 2
    printed = run("data", "sft", "run", "--prompt", "turns", "--val", 0, "--out", "other").stdout
    assert "1 replies are marked as excluded from training" in printed


def test_another_system_prompt(run, sft):
    save("traj.json", ENTRY)
    keep("run", episode(0))
    keep("without", episode(1), system_prompt=None)
    Path("short.txt").write_text("Walk to the goal.\n")
    rows, _ = sft("traj.json", "run", "without", "--system-prompt", "short.txt", "--val", 0)
    assert [
        [each["role"] for each in row["messages"][:2]] + [row["messages"][0]["content"]]
        for row in rows["train"]
    ] == [["system", "user", "Walk to the goal."]] * 3
    refused = run("data", "sft", "run", "--system-prompt", "Wordle=short.txt", "--out", "out")
    assert "--system-prompt" in refused.stderr
    assert "Wordle" in refused.stderr


def by_task(row):
    return row["task_id"]


def test_function_calls_are_reported(run):
    calls = [{"name": "move_up", "arguments": "{}", "id": "call_1"}]
    keep("run", episode(0, steps=({"action": "move up", "tool_calls": calls},)))
    assert "1 rows have function calls" in run("data", "sft", "run", "--val", 0, "--out", "out").stdout
    (read,) = read_trajectories(Path("out"))
    assert read.messages[2].extra["tool_calls"] == calls


def test_runs_become_agenttraj(run):
    keep("run", episode(3), episode(4, score=0.0, success=False))
    result = run("data", "agenttraj", "run", "--successful", "--out", "new/maze.json")
    assert result.exit_code == 0, result.stderr
    assert result.stdout == "Left out, not successful: 1.\n1 trajectories. Written to new/maze.json.\n"
    (entry,) = json.loads(Path("new/maze.json").read_text())
    assert [(each["from"], each["loss"]) for each in entry["conversations"]] == [
        ("human", None),
        ("gpt", False),
        ("human", None),
        ("gpt", True),
        ("human", None),
    ]
    assert {key: entry[key] for key in ("item_id", "reward", "success", "action_format")} == {
        "item_id": "maze_3",
        "reward": 1.0,
        "success": True,
        "action_format": "react",
    }
    assert "exists; choose another file" in run("data", "agenttraj", "run", "--out", "new/maze.json").stderr


def test_a_run_is_put_into_another_format(run):
    keep("run", episode(3), episode(4, "Hello."), episode(5, fault={"kind": "ServerError"}, score=None))
    result = run("data", "reformat", "run", "--to", "function_calling", "--out", "calls.json")
    assert result.exit_code == 0, result.stderr
    assert result.stdout == (
        "Left out, ended by ServerError: 1.\n"
        "Replies that could not be converted: 1 NoAction.\n"
        "  run: task 4, sample 0, turn 1: NoAction: 'Hello.'\n"
        "Left out, unconverted reply: 1.\n"
        "1 trajectories. Written to calls.json.\n"
    )
    (read,) = read_trajectories(Path("calls.json"))
    assert (read.task_id, read.action_format, read.score) == (3, "function_calling", 1.0)
    assert read.messages[3].content == (
        '{"thought": "Up.", "function_name": "move", "arguments": {"direction": "up"}}'
    )
    again = run("data", "reformat", "calls.json", "--to", "react", "--out", "react.json")
    assert again.exit_code == 0, again.stderr
    (back,) = read_trajectories(Path("react.json"))
    assert back.messages[3].content == "Thought:\nUp.\n\nAction:\nmove up"


def test_replies_that_cannot_be_read_are_kept_on_request(run):
    keep("run", *(episode(task, "\x1b[31mHello.") for task in range(22)))
    arguments = ["data", "reformat", "run", "--to", "tags", "--out", "tags.json"]
    result = run(*arguments)
    assert (result.exit_code, Path("tags.json").exists()) == (2, False)
    assert "no trajectory remains" in result.stderr
    assert "\x1b" not in result.stdout
    assert "  and 2 more, which --json lists" in result.stdout
    result = run(*arguments, "--keep-unparsed", "--json")
    told = json.loads(result.stdout)
    assert (told["trajectories"], told["left_out_unparsed"], told["unparsed"]) == (22, 0, {"NoAction": 22})
    assert told["replies"][21] == {
        "kind": "NoAction",
        "source": "run: task 21, sample 0",
        "turn": 1,
        "reply": "\x1b[31mHello.",
    }
    assert len(read_trajectories(Path("tags.json"))) == 22


# -------------------------------------------------------------------------------------------- the page


def blocks(language):
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)


def commands(text):
    return [shlex.split(line)[1:] for line in text.replace("\\\n", " ").splitlines()]


@pytest.mark.slow
def test_the_commands_of_the_page_run(run, capsys):
    save("maze_train.json", ENTRY)
    printed = [run(*command) for block in blocks("console") for command in commands(block)]
    assert [result.exit_code for result in printed] == [0] * 11, [result.stderr for result in printed]
    assert "8 rows for training and 2 for validation" in printed[2].stdout
    assert "Left out, not successful: " in printed[2].stdout
    assert "10 trajectories." in printed[3].stdout
    assert "10 rows for training" in printed[5].stdout
    row = parquet.read_table("data/sft/train.parquet").to_pylist()[0]
    columns = PAGE.partition("## Contents of a row")[2].partition("## ")[0]
    assert re.findall(r"^\| `(\w+)` \|", columns, re.MULTILINE) == list(row)
    again = {each.task_id: each.messages[0].content for each in read_trajectories(Path("data/again"))}
    assert again == {each.task_id: each.messages[0].content for each in read_trajectories(Path("runs/known"))}
    (calls, react) = (read_trajectories(Path(f"data/{name}.json")) for name in ("calls", "maze_calls"))
    assert (len(calls), calls[0].action_format) == (10, "function_calling")
    assert (len(react), react[0].action_format) == (1, "function_calling")
    (code,) = blocks("python")
    exec(compile(code, "docs/trajectories.md", "exec"), {"__name__": "page"})  # noqa: S102 - our own page
    assert capsys.readouterr().out == "10 {}\n['system', 'user', 'assistant']\n"


def test_the_entry_of_the_page_can_be_read():
    (entry,) = blocks("json")
    Path("entry.json").write_text(f"[{entry}]")
    (read,) = read_trajectories(Path("entry.json"))
    assert (read.task_id, read.score, read.success, len(read.messages)) == (3, 1.0, True, 4)


def test_rejection_sampling_as_the_page_has_it(run):
    """The model is a fake one, which never solves a task: nothing is left, and the command reports it."""
    (text,) = blocks("bash")
    with FakeServer(lambda request: completion("Action: inventory", usage={"completion_tokens": 3})) as model:
        played, chosen = (
            [word.replace("http://127.0.0.1:8000/v1", f"{model.url}/v1") for word in command]
            for command in commands(text)
        )
        result = run(*played, env={"OPENAI_API_KEY": "none"})
        assert result.exit_code == 0, result.stderr
    result = run(*chosen)
    assert result.exit_code == 2
    assert "8 not successful" in result.stderr
    result = run(*[word for word in chosen if word != "--successful"])
    assert "2 rows for training" in result.stdout
    assert "Left out, duplicate: 6." in result.stdout
