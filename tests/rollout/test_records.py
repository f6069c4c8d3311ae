"""An episode is recorded though a disk was full, and records of earlier versions mean what they meant."""

from __future__ import annotations

import asyncio
import errno
import json
import os
from dataclasses import replace

import pytest

from agentgym_gym.rollout import EpisodeWriter
from report_runs import episode as record

FAULT = {"kind": "ServerError", "message": "on purpose"}


@pytest.mark.parametrize(
    ("changes", "ending"),
    [
        ({"fault": FAULT}, "fault"),
        ({"agent_fault": FAULT}, "agent_fault"),
        ({"fault": FAULT, "agent_fault": FAULT}, "agent_fault"),
        ({"terminated": True, "truncated": False}, "terminated"),
        ({"terminated": False, "truncated": True}, "truncated"),
        ({"terminated": False, "truncated": False}, "gave_up"),
    ],
)
def test_the_ending_of_an_episode_whose_file_has_none(changes, ending):
    assert replace(record(0), ending="", **changes).ending == ending


def test_after_a_line_that_can_neither_be_completed_nor_removed_another_file_is_started(
    tmp_path, monkeypatch
):
    write, folder = os.write, EpisodeWriter(tmp_path)

    def full(descriptor, data):
        if not data.startswith(b"{") or len(data) < 20:
            raise OSError(errno.ENOSPC, "no space left on the device")
        return write(descriptor, data[:10])  # the rest does not fit

    def refuse(*_):
        raise OSError(errno.EIO, "input/output error")

    async def play():
        await folder.write(record(0))
        with monkeypatch.context() as patch:
            patch.setattr(os, "write", full)
            patch.setattr(os, "ftruncate", refuse)
            await folder.write(record(1))
        for number in (2, 3):
            await folder.write(record(number))

    asyncio.run(play())
    folder.close()
    first, second = sorted(tmp_path.glob("episodes-*"), key=lambda file: file.stat().st_mtime_ns)
    *whole, cut = first.read_bytes().split(b"\n")
    assert [json.loads(line)["task_id"] for line in whole] == [0]
    assert len(cut) == 10
    assert [json.loads(line)["task_id"] for line in second.read_bytes().splitlines()] == [2, 3]
