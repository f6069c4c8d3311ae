"""The folder that episodes are written to while they are played."""

from __future__ import annotations

import asyncio
import json
import os
import threading
from dataclasses import replace

import inside
from agentgym_gym.rollout import EpisodeWriter
from report_runs import episode as record


def lines(folder):
    return [json.loads(line) for file in folder.glob("episodes-*") for line in file.read_text().splitlines()]


def test_an_unresponsive_disk_blocks_no_episode(tmp_path, monkeypatch, caplog):
    answers, real = threading.Event(), os.write
    inside.limit_writing(monkeypatch, seconds=0.01, waiting=2)

    def slow(file, data):
        assert answers.wait(60)
        return real(file, data)

    folder = EpisodeWriter(tmp_path)

    async def work():
        with monkeypatch.context() as patch:
            patch.setattr(os, "write", slow)
            for number in range(3):
                await folder.write(record(number))
            assert not lines(tmp_path)
            answers.set()
            inside.limit_writing(patch, seconds=60, waiting=9)
            await folder.write(record(3))  # after the waiting ones

    asyncio.run(work())
    assert [line["task_id"] for line in lines(tmp_path)] == [0, 1, 3]
    (warning,) = caplog.messages
    assert "2 episodes wait to be written" in warning


def test_episodes_that_are_not_json_are_left_out_and_half_a_surrogate_pair_is_not(tmp_path, caplog):
    folder = EpisodeWriter(tmp_path)

    async def work():
        for goal in (float("nan"), object(), "\ud83d"):
            await folder.write(replace(record(0), goal=goal))

    asyncio.run(work())
    (file,) = tmp_path.glob("episodes-*")
    assert [json.loads(line)["goal"] for line in file.read_bytes().splitlines()] == ["\ud83d"]
    assert len(caplog.messages) == 1


def test_shared_facts_of_episodes_are_written_once(tmp_path):
    for agent in ("first", "second"):
        folder = EpisodeWriter(tmp_path)
        facts = {"env_id": record(0).env_id, "agent": agent}
        asyncio.run(folder.write(record(0), facts))
    (file,) = tmp_path.glob("run-*.json")
    assert json.loads(file.read_bytes())["run"]["agent"] == "first"
