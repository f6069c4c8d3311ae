"""Trajectories read from files and runs, chosen, and written."""

from __future__ import annotations

import copy
import json
import re
from dataclasses import replace

import pytest
from hypothesis import assume, given, settings

import needs
from agentgym_gym.data import (
    Message,
    Trajectory,
    read_trajectories,
    select,
    sft_rows,
    sft_schema,
    write,
    write_agenttraj,
)
from agentgym_gym.errors import BadOption
from agentgym_gym.evaluate import RunFolder
from command_line import run
from trajectories import ENTRY, PROMPT, episode, trajectories

FACTS = {
    "env_id": "agentgym/Maze-v0",
    "agent": "model",
    "options": {"action_format": None, "parser": "default"},
    "system_prompt": PROMPT,
}
few = settings(max_examples=12, deadline=None)


@pytest.fixture
def saved(tmp_path):
    """Writes entries into a file of AgentTraj."""

    def save(*entries, name="maze_train.json"):
        file = tmp_path / name
        file.write_text(json.dumps(entries), "utf-8")
        return file

    return save


@pytest.fixture
def kept(tmp_path):
    """Writes a run; returns its folder."""

    def keep(*records, name="run", **facts):
        with RunFolder(tmp_path / name, FACTS | facts) as folder:
            for record in records:
                folder.add(record)
        return tmp_path / name

    return keep


@pytest.fixture(scope="module")
def rewrite(tmp_path_factory):
    """Writes the one trajectory of a source as a row with its prompt in a form, and reads the row."""
    pytest.importorskip("pyarrow", reason=needs.reason("pyarrow"))

    def rewrite(source, form):
        folder = tmp_path_factory.mktemp("sft") / form
        options = ("--prompt", form, "--val", "0", "--split", "all", "--out", folder)
        result = run("data", "sft", source, *options)
        assert result.exit_code == 0, result.stderr
        (trajectory,) = read_trajectories(folder)
        return trajectory, folder

    return rewrite


# ------------------------------------------------------------------------------------------- AgentTraj


def test_agenttraj_is_read_and_written_as_it_is(saved, tmp_path):
    more = ENTRY | {"reward": 1, "success": 1, "note": ["kept"]}
    first, second = read_trajectories(saved(ENTRY, more))
    assert (first.env_id, first.task_id, first.item_id) == ("agentgym/Maze-v0", 3, "maze_3")
    assert [each.role for each in first.messages] == ["user", "assistant", "user", "assistant", "user"]
    assert [each.loss for each in first.messages] == [None, False, None, True, None]
    assert [each.content for each in first.messages] == [each["value"] for each in ENTRY["conversations"]]
    assert (first.score, first.success, first.action_format, first.fault) == (None, None, None, None)
    assert (second.score, second.success, second.extra) == (1.0, True, {"note": ["kept"]})
    assert first.source.endswith("maze_train.json: entry 0")
    file = tmp_path / "written" / "maze.json"
    write_agenttraj(file, [first, second])
    assert json.loads(file.read_text("utf-8")) == [ENTRY, more]


def test_an_entry_in_each_line_is_what_the_trainer_of_agentgym_writes(tmp_path):
    file = tmp_path / "inference_iter_1.jsonl"
    file.write_text("".join(json.dumps(ENTRY | {"reward": score}) + "\n" for score in (0.5, 1.0)))
    assert [each.score for each in read_trajectories(file)] == [0.5, 1.0]


def test_a_folder_is_its_files_in_the_order_of_their_names(saved, tmp_path):
    saved(ENTRY | {"item_id": "maze_2"}, name="b.json")
    saved(ENTRY | {"item_id": "maze_1"}, ENTRY | {"item_id": "maze_0"}, name="a.json")
    assert [each.task_id for each in read_trajectories(tmp_path)] == [1, 0, 2]


def changed(**fields):
    entry = copy.deepcopy(ENTRY)
    entry["conversations"][2] |= fields
    return entry


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({"item_id": "maze_3", "conversations": None}, "entry 1 has no conversations"),
        ({"item_id": "maze_3", "conversations": []}, "entry 1 has no conversations"),
        ({"conversations": ENTRY["conversations"]}, "entry 1 has no item_id"),
        (ENTRY | {"item_id": "maze_99"}, "Maze has no task 99"),
        (changed(**{"from": "robot"}), "entry 1: message 2 should be"),
        (changed(**{"from": []}), "entry 1: message 2 should be"),
        (changed(value=None), "entry 1: message 2 should be"),
        (changed(loss="yes"), "entry 1: message 2: loss should be"),
        (changed(value="\ud800"), "entry 1 contains a lone surrogate"),
        ({**ENTRY, "conversations": ["hello"]}, "entry 1: message 0 should be"),
        (ENTRY | {"reward": "high"}, "entry 1: the reward should be"),
        (ENTRY | {"reward": float("nan")}, "entry 1: the reward should be"),
        (ENTRY | {"reward": True}, "entry 1: the reward should be"),
        (ENTRY | {"reward": 10**400}, "entry 1: the reward should be"),
        (ENTRY | {"success": "yes"}, "entry 1: success should be"),
        (ENTRY | {"action_format": 1}, "entry 1: action_format should be"),
    ],
)
def test_an_invalid_entry_is_an_error_with_its_place(saved, entry, message):
    file = saved(ENTRY, entry)
    with pytest.raises(BadOption, match=re.escape(message)) as caught:
        read_trajectories(file)
    assert str(file) in str(caught.value)


@few
@given(trajectories())
def test_written_agenttraj_is_read_again(tmp_path_factory, trajectory):
    file = tmp_path_factory.mktemp("agenttraj") / "maze.json"
    write_agenttraj(file, [trajectory])
    before = file.read_bytes()
    (again,) = read_trajectories(file)
    named = replace(trajectory, item_id=trajectory.item_id or f"maze_{trajectory.task_id}")
    if named.item_id == "maze_3":
        named = replace(named, task_id=3)  # the file has only the item id
    first, *rest = named.messages
    if first.role == "system":
        answer = Message("assistant", "OK.", loss=False)
        named = replace(named, messages=(replace(first, role="user"), answer, *rest))
    assert again == named
    write_agenttraj(file, [again], force=True)
    assert file.read_bytes() == before


def test_a_file_is_replaced_only_with_force(saved, tmp_path):
    file = saved(ENTRY)
    (trajectory,) = read_trajectories(file)
    with pytest.raises(BadOption, match="exists"):
        write_agenttraj(file, [trajectory])
    assert write_agenttraj(file, [trajectory, trajectory], force=True) == 2
    with pytest.raises(BadOption, match="no trajectories"):
        write_agenttraj(tmp_path / "empty.json", [])
    with pytest.raises(BadOption, match="cannot write to"):
        write_agenttraj(file / "below" / "a.json", [trajectory])
    assert [path.name for path in tmp_path.iterdir()] == [file.name]


def test_a_trajectory_without_an_item_id_is_refused(tmp_path):
    seeded = Trajectory("CartPole-v1", 0, (Message("assistant", "left"),))
    with pytest.raises(BadOption, match="CartPole-v1"):
        write_agenttraj(tmp_path / "cart.json", [seeded])


# ----------------------------------------------------------------------------------- the first messages


def test_the_prompt_of_agentgym_becomes_a_system_message_and_comes_back(saved, rewrite):
    (trajectory,) = read_trajectories(saved(ENTRY))
    system, rows = rewrite(saved(ENTRY), "system")
    assert [(each.role, each.loss) for each in system.messages] == [
        ("system", None),
        ("user", None),
        ("assistant", True),
        ("user", None),
    ]
    assert system.messages[0].content == PROMPT
    assert rewrite(rows, "system")[0] == system
    turns, rows = rewrite(rows, "turns")
    assert turns == trajectory
    assert rewrite(rows, "turns")[0] == trajectory


def test_a_first_reply_with_loss_is_not_the_answer_to_the_prompt(saved, rewrite):
    for loss in (True, None):
        entry = copy.deepcopy(ENTRY)
        entry["conversations"][1]["loss"] = loss
        assert [rewrite(saved(entry), "system")[0]] == read_trajectories(saved(entry))
    reply = saved(ENTRY | {"conversations": ENTRY["conversations"][3:4]})
    for form in ("system", "turns"):
        assert [rewrite(reply, form)[0]] == read_trajectories(reply)


@pytest.mark.slow
@few
@given(trajectories())
def test_the_first_messages_are_converted_and_restored(rewrite, tmp_path_factory, trajectory):
    file = tmp_path_factory.mktemp("agenttraj") / "maze.json"
    write_agenttraj(file, [trajectory])
    (turns,) = read_trajectories(file)
    assume(any(message.role == "assistant" for message in turns.messages[2:]))
    _, rows = rewrite(file, "system")
    assert rewrite(rows, "turns")[0] == turns
    assert all(message.role != "system" for message in turns.messages)


# ------------------------------------------------------------------------------------------------- runs


def test_an_episode_is_read_with_the_prompt_of_its_agent(kept):
    calls = [{"name": "move_up", "arguments": "{}", "id": "call_1"}]
    thinking = episode(1, steps=({"action": "move up", "tool_calls": calls, "reasoning": "Hm."},))
    first, second, third = read_trajectories(
        kept(episode(0), thinking, episode(2, fault={"kind": "ServerError"}, score=None, success=None))
    )
    assert [(each.role, each.loss) for each in first.messages] == [
        ("system", None),
        ("user", None),
        ("assistant", True),
        ("user", None),
    ]
    assert first.messages[0].content == PROMPT
    assert (first.score, first.success, first.action_format) == (1.0, True, "react")
    assert first.extra == {"agent": "model", "sample": 0}
    assert second.messages[2].extra == {"tool_calls": calls, "reasoning_content": "Hm."}
    assert (third.fault, third.source.rpartition("/")[2]) == ("ServerError", "run: task 2, sample 0")


def test_each_reply_is_written_with_its_metadata(kept):
    messages = [{"role": role, "content": "x"} for role in ("user", "assistant") * 3]
    steps = ({"reasoning": "first"}, {"action": "move up"}, {"reasoning": "third"})
    (read,) = read_trajectories(kept(episode(messages=tuple(messages), steps=steps, turns=3)))
    assert [each.extra for each in read.messages if each.role == "assistant"] == [
        {"reasoning_content": "first"},
        {},
        {"reasoning_content": "third"},
    ]


def test_a_reply_that_was_not_played_is_not_to_be_trained_on(kept):
    messages = [{"role": role, "content": "x"} for role in ("user", "assistant") * 2]
    (read,) = read_trajectories(kept(episode(messages=tuple(messages), steps=({}, {}), ending="reply_cut")))
    assert [each.loss for each in read.messages if each.role == "assistant"] == [True, False]


def test_a_prompt_of_the_user_is_read_as_the_prompt_of_the_agent(kept, rewrite):
    examples = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]
    settings = {"prompt": {"system": "Please.\n{{system_prompt}}", "examples": examples}}
    (trajectory,) = read_trajectories(kept(episode(), agent_settings=settings))
    assert [(each.content, each.loss) for each in trajectory.messages[:3]] == [
        (f"Please.\n{PROMPT}", None),
        ("a", None),
        ("b", False),
    ]
    settings = {"prompt": {"system": "", "examples": examples}}
    folder = kept(episode(), name="other", agent_settings=settings)
    (trajectory,) = read_trajectories(folder)
    assert [(each.content, each.loss) for each in trajectory.messages[:2]] == [("a", None), ("b", False)]
    assert rewrite(folder, "system")[0] == trajectory
    settings = {"system_prompt": "Mine, {{system_prompt}}.", "prompt": {"system": None, "examples": []}}
    (trajectory,) = read_trajectories(kept(episode(), name="third", agent_settings=settings))
    assert trajectory.messages[0].content == "Mine, {{system_prompt}}."


def test_the_parser_of_agentgym_is_named(kept):
    (read,) = read_trajectories(kept(episode(), options={"action_format": "react", "parser": "agentgym"}))
    assert read.action_format == "agentgym"


def test_a_run_without_its_system_prompt_is_refused(kept):
    folder = kept(episode())
    (folder / "summary.json").unlink()
    with pytest.raises(BadOption, match="no system prompt"):
        read_trajectories(folder)


def test_a_folder_of_runs_and_the_file_of_one(kept, tmp_path):
    folder = kept(episode(4), name="runs/a")
    kept(episode(5), name="runs/b")
    assert [each.task_id for each in read_trajectories(tmp_path / "runs")] == [4, 5]
    assert [each.task_id for each in read_trajectories(folder / "episodes.jsonl")] == [4]


# -------------------------------------------------------------------------------------------- choosing


def of(task_id, score, text="up", **fields):
    messages = (Message("user", "?"), Message("assistant", text))
    usual = {"score": score, "success": None if score is None else score == 1}
    return Trajectory("agentgym/Maze-v0", task_id, messages, **{**usual, **fields})


def test_selected_trajectories_and_reasons_for_the_others():
    silent = replace(of(1, 1.0), messages=(Message("user", "?"),))
    given = [
        of(0, 1.0),
        of(0, 1.0),
        of(0, 0.5, "left"),
        of(1, 0.25),
        of(1, None),
        of(2, None, fault="ServerError"),
        of(2, 1.0, fault="AgentCrashed"),
        silent,
    ]
    always = {"ended by AgentCrashed": 1, "ended by ServerError": 1, "duplicate": 2, "no reply": 1}
    chosen = select(given)
    assert chosen.left_out == always
    assert list(chosen.kept) == [given[0], given[2], given[3]]
    chosen = select(given, successful=True)
    assert list(chosen.kept) == [given[0]]
    assert chosen.left_out["not successful"] == 2
    assert chosen.left_out["success unknown"] == 1
    chosen = select(given, min_score=0.5)
    assert list(chosen.kept) == [given[0], given[2]]
    assert (chosen.left_out["score below 0.5"], chosen.left_out["score unknown"]) == (1, 1)


def test_the_best_of_each_task():
    given = [of(0, 0.5, "a"), of(1, 0.1, "b"), of(0, 1.0, "c"), of(0, 1.0, "d"), of(0, None, "e")]
    chosen = select(given, best=1)
    assert list(chosen.kept) == [given[1], given[2]]
    assert chosen.left_out == {"not among the best 1 of its task": 3}
    assert list(select(given, best=2).kept) == given[1:4]
    with pytest.raises(BadOption, match="best=0"):
        select(given, best=0)


# -------------------------------------------------------------------------------------- rows to train on


def written(folder, *given):
    pytest.importorskip("pyarrow", reason=needs.reason("pyarrow"))
    return write(folder, {"train": sft_rows(given)}, sft_schema())["train"]


@few
@given(trajectories())
def test_a_row_can_be_read_back(tmp_path_factory, trajectory):
    path = written(tmp_path_factory.mktemp("sft"), trajectory)
    assert read_trajectories(path) == [trajectory]


def test_a_row_ends_with_a_reply(saved):
    (row,) = sft_rows(read_trajectories(saved(ENTRY)))
    assert [each["role"] for each in row["messages"]] == ["user", "assistant", "user", "assistant"]
    assert row["loss"] == [None, False, None, True]
    assert all(set(each) == {"role", "content"} for each in row["messages"])


def test_faulted_trajectories_are_not_written(tmp_path):
    faulted = [of(0, None, fault="ServerError")]
    for write_it in (lambda: write_agenttraj(tmp_path / "a.json", faulted), lambda: list(sft_rows(faulted))):
        with pytest.raises(BadOption, match="ended by ServerError"):
            write_it()


def test_rows_of_another_schema_are_an_error(tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet", reason=needs.reason("pyarrow.parquet"))
    pa = pytest.importorskip("pyarrow", reason=needs.reason("pyarrow"))

    def save(rows, name="other.parquet", **more):
        parquet.write_table(pa.Table.from_pylist(rows, **more), tmp_path / name)
        return tmp_path / name

    messages = pa.schema([sft_schema().field("messages")])
    of_messages = save([{"messages": [{"role": "user", "content": "a"}]}], schema=messages)
    with pytest.raises(BadOption, match="no column 'data_source'"):
        read_trajectories(of_messages)
    (row,) = sft_rows([of(0, 1.0)])
    for wrong in (
        {"rest": "{"},
        {"rest": "[]"},
        {"rest": None},
        {"loss": [None]},
        {"messages": None},
        {"messages": [{"role": "robot", "content": "a"}] * 2},
        {"messages": [{"role": "user", "content": None}] * 2},
    ):
        file = save([row, row | wrong], schema=sft_schema())
        with pytest.raises(BadOption, match=r"other\.parquet: row 1 "):
            read_trajectories(file)
    (tmp_path / "no.parquet").write_text("no")
    with pytest.raises(BadOption, match=r"cannot read .*no\.parquet"):
        read_trajectories(tmp_path / "no.parquet")


def test_a_path_without_trajectories_is_an_error(tmp_path):
    with pytest.raises(BadOption, match="does not exist"):
        read_trajectories(tmp_path / "nowhere")
    with pytest.raises(BadOption, match="contains no trajectories"):
        read_trajectories(tmp_path)
