"""Episodes that verl's own worker plays, written for the report while the training goes on."""

from __future__ import annotations

import importlib
import json
import os
import re
from dataclasses import replace

import pytest

import needs
from agentgym_gym.evaluate import read_training, write_report
from agentgym_gym.rollout import writer_at

pytest.importorskip("verl", reason=needs.reason("verl"))

from counting_env import Count
from verl_worker import count_row as row
from verl_worker import scripted

WON = ["1", "2", "3"]
LOST = ["what?", "nothing", "at all"]


def by_start(**scripts):
    """A model that says the n-th reply of the script of its row, whichever row is played first."""

    def reply(told):
        (start,) = re.findall(r"Count from (\d)", told)
        return scripts[f"from_{start}"][told.count("<|im_start|>assistant") - 1]

    return scripted(reply)


@pytest.fixture(autouse=True)
def _step_is_told():
    importlib.import_module("verl_bridge.trainer")  # as VERL_USE_EXTERNAL_MODULES has verl do


@pytest.fixture(autouse=True)
def _own_folders():
    writer_at.cache_clear()


def read(folder):
    """Return the runs of a training by their phase, the episodes by step and row."""
    return {
        run.facts["phase"]: replace(
            run, records=tuple(sorted(run.records, key=lambda each: (each.step, each.messages[0]["content"])))
        )
        for run in read_training(folder)
    }


def test_a_training_and_a_validation_are_read_as_runs(play, tmp_path):
    rows = [row(), row(start=3)]
    play(by_start(from_0=WON, from_3=LOST), rows, episodes_dir="kept", max_turns=3, step=1)
    play(
        by_start(from_0=LOST, from_3=["4", "5", "6"]),
        rows,
        episodes_dir="kept",
        max_turns=3,
        step=1,
        validate=True,
    )
    play(scripted(LOST), rows, episodes_dir="kept", max_turns=2, step=2)
    runs = read(tmp_path / "kept")  # beside the yaml of the loop
    assert set(runs) == {"training", "validation"}
    facts = runs["training"].facts
    assert (facts["env_id"], facts["system_prompt"]) == ("bridge/Count-v0", "You play a game.")
    first, second, *later = runs["training"].records
    assert (first.step, first.validation, first.score, first.success, first.ending) == (
        *(1, False, 3.0, True, "terminated"),
    )
    assert first.rewards == (1.0, 1.0, 1.0)
    assert [message["content"] for message in first.messages] == [
        *("Count from 0 to 3.", "1", "You are at 1.", "2", "You are at 2.", "3", "You are at 3."),
    ]
    assert [set(step) for step in first.steps] == [
        {"agent_seconds", "env_seconds", "prompt_tokens", "completion_tokens"}
    ] * 3
    assert (second.score, second.success, second.turns, second.ending) == (0.0, False, 3, "truncated")
    assert [(each.step, each.turns, each.ending) for each in later] == [(2, 2, "truncated")] * 2
    shown = runs["validation"].records
    assert [(each.step, each.validation, each.score) for each in shown] == [(1, True, 0.0), (1, True, 3.0)]
    written_report = write_report([tmp_path / "kept"], tmp_path / "report.html")
    assert (written_report.runs, written_report.episodes) == (2, 6)


def test_a_fault_is_written_without_passwords(play, tmp_path, monkeypatch):
    def fail(self, action):
        raise RuntimeError("no answer from http://me:hunter2@127.0.0.1:36005/step")

    monkeypatch.setattr(Count, "step", fail)
    play(scripted(WON), [row(besides="hunter2")], episodes_dir=str(tmp_path / "kept"))
    (episode,) = read(tmp_path / "kept")["training"].records
    assert episode.fault == {
        "kind": "RuntimeError",
        "message": "no answer from http://***@127.0.0.1:36005/step",
    }
    assert (episode.score, episode.success, episode.ending) == (None, None, "fault")
    assert all(b"hunter2" not in each.read_bytes() for each in (tmp_path / "kept").iterdir())


def test_an_episode_without_room_is_reported(play, tmp_path):
    long = row(besides=" and on" * 100)
    play(scripted(WON), [long], episodes_dir="kept", response_length=64, max_observation_tokens=500)
    (episode,) = read(tmp_path / "kept")["training"].records
    assert (episode.ending, episode.turns, episode.score) == ("context_overflow", 1, 1.0)


def test_if_the_log_cannot_be_written_the_training_continues(play, tmp_path, caplog):
    (tmp_path / "kept").write_text("a file, and no folder")
    played = play(scripted(WON, WON), [row(), row()], episodes_dir="kept")
    assert [played.score(i) for i in (0, 1)] == [3.0, 3.0]
    warnings = [each.message for each in caplog.records if "could not be written" in each.message]
    assert len(warnings) == 1
    assert "later episodes are still tried" in warnings[0]


def test_a_full_disk_leaves_no_half_line(play, tmp_path, monkeypatch):
    """The first write of the second episode takes ten bytes, and the next says that the disk is full."""
    play(scripted(WON), [row()], episodes_dir="kept", step=1)
    real, calls = os.write, []

    def full(file, data):
        calls.append(len(data))
        if len(calls) > 1:
            raise OSError(28, "No space left on device")
        return real(file, data[:10])

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", full)
        play(scripted(WON), [row()], episodes_dir="kept", step=2)
    assert len(calls) == 2
    play(scripted(WON), [row()], episodes_dir="kept", step=3)
    (file,) = (tmp_path / "kept").glob("episodes-*.jsonl")
    assert [json.loads(line)["step"] for line in file.read_bytes().splitlines()] == [1, 3]


def test_without_the_option_nothing_is_written(play, tmp_path):
    before = set(tmp_path.rglob("*.json*"))
    play(scripted(WON), [row()])
    assert set(tmp_path.rglob("*.json*")) == before
