"""Slots: what the processes of a machine share on a server with a fixed capacity."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import filelock
import pytest

import by_hand
import inside
import programs
from agentgym_gym import AgentGymEnv, AsyncAgentGymEnv, errors
from by_hand import HandServer, Listing
from fake_server import as_json, hang_up
from unusable_folders import a_file_in_its_place, a_read_only_file_system, full, no_folder


@pytest.fixture
def server(started):
    """A server of two places that lists its environments."""
    return started(HandServer(range(501, 520)))


@pytest.fixture
def process(server, monkeypatch):
    """Makes environments of a further process, which does not know the environments of an earlier one."""

    def begin(number=1, kind=AgentGymEnv):
        by_hand.register(by_hand.make(Listing()), monkeypatch)
        return [kind("Hand", server=server.url) for _ in range(number)]

    return begin


@pytest.fixture
def folder(tmp_path, monkeypatch):
    inside.keep_files_in(tmp_path / "files", monkeypatch)
    return tmp_path / "files"


def test_leases_of_another_process_are_not_taken(server, process):
    (first, third), (second,) = process(2), process()
    first.reset(seed=0)
    second.reset(seed=0)
    with pytest.raises(errors.ServerFull, match="processes of this machine"):
        third.reset(seed=0)
    second.close()
    third.reset(seed=0)
    assert server.used("/reset") == [501, 502, 502]  # what the other process left, and no third one
    assert server.there == [501, 502]


def test_environments_of_unknown_clients_are_not_taken(server, process):
    server.there = [7, 8]
    (env,) = process()
    with pytest.raises(errors.ServerFull, match="restart"):
        env.reset(seed=0)
    server.there = [7]
    env.reset(seed=0)  # in the place that it did not keep
    assert server.used("/reset") == [501]


def test_an_id_that_is_listed_already_is_not_taken_for_new(server, process):
    server.there, server.ids = [7], iter([7])
    (env,) = process()
    with pytest.raises(errors.ServerFull, match="in use"):
        env.reset(seed=0)


def test_an_id_of_before_a_restart_is_not_taken(server, process):
    (env,) = process()
    env.reset(seed=0)
    env.close()
    server.there, server.ids = [], iter([640])
    (again,) = process()
    again.reset(seed=0)
    assert server.used("/reset") == [501, 640]


def test_an_unusable_environment_is_left_out_of_its_slot(server, process):
    (env,) = process()
    env.reset(seed=0)
    server.bad["/reset"] = lambda connection: connection.send(next(answers))
    answers = iter([as_json({"error": "broken"}), as_json(by_hand.SEEN)])
    env.reset(seed=0)
    env.close()
    del server.bad["/reset"]
    process()[0].reset(seed=0)
    assert server.used("/reset") == [501, 501, 502, 502]


def test_a_slot_is_kept_while_a_request_may_still_run(server, process):
    server.bad["/step"] = hang_up
    for env in process(2):
        env.reset(seed=0)
        env.step("inventory")
        env.close()
    with pytest.raises(errors.ServerFull):
        process()[0].reset(seed=0)


@pytest.mark.slow
def test_a_process_that_ends_leaves_its_slot(counted, tmp_path, monkeypatch):
    server = counted({"/": "ok", "/list_envs": [], "/create": 7, "/reset": ["Which?", None]})
    code = """
        import os, sys
        from agentgym_gym import AgentGymEnv
        AgentGymEnv("SQLGym", server=sys.argv[1]).reset(seed=0)
        os._exit(0)
    """
    subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code), server.url],
        env=programs.environment(TMPDIR=str(tmp_path)),
        check=True,
    )
    server._answers["/list_envs"] = [7]
    inside.keep_files_in(*tmp_path.glob("agentgym-gym-*"), monkeypatch)
    with AgentGymEnv("SQLGym", server=server.url) as env:
        env.reset(seed=0)
    assert (server.asked["/create"], server.asked["/reset"]) == (1, 2)


def test_the_slot_of_a_reset_that_is_cancelled_is_free_at_once(server, process):
    asked = threading.Event()
    server.at["/list_envs"] = asked.set

    async def play():
        for _ in range(20):
            asked.clear()
            resetting = asyncio.ensure_future(env.reset(seed=0))
            await asyncio.to_thread(asked.wait, 30)
            resetting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await resetting
        server.bad.clear()
        await env.reset(seed=0)
        await env.close()

    server.there = [7]
    server.bad["/list_envs"] = lambda connection: connection.wait(30)
    (env,) = process(kind=AsyncAgentGymEnv)
    asyncio.run(play())
    assert server.used("/reset") == [501]


def test_the_slot_of_a_reset_that_is_interrupted_is_free_again(server, process, monkeypatch):
    """Also where Ctrl-C comes between its being taken and its being kept."""
    acquire = filelock.FileLock.acquire

    def interrupt(lock, *args, **options):
        acquire(lock, *args, **options)
        raise KeyboardInterrupt

    (env,) = process()
    for _ in range(3):
        with monkeypatch.context() as patch:
            patch.setattr(filelock.FileLock, "acquire", interrupt)
            with pytest.raises(KeyboardInterrupt):
                env.reset(seed=0)
    env.reset(seed=0)


def a_full_disk(monkeypatch, tmp_path):
    monkeypatch.setattr(Path, "open", full)


def no_locks(monkeypatch, tmp_path):
    def acquire(*_args):
        raise NotImplementedError("no locks on this file system")

    monkeypatch.setattr(filelock.FileLock, "acquire", acquire)


NOWHERE_TO_WRITE = [no_folder, a_file_in_its_place, a_read_only_file_system, a_full_disk, no_locks]


@pytest.mark.parametrize("nowhere", NOWHERE_TO_WRITE)
def test_where_no_slot_is_available_no_environment_is_made(server, process, monkeypatch, tmp_path, nowhere):
    (env,) = process()
    with monkeypatch.context() as patch:
        nowhere(patch, tmp_path)
        for _ in range(3):
            with pytest.raises(errors.SetupError, match=r"(the folder /|any folder).*TMPDIR"):
                env.reset(seed=0)
    assert server.times("/create") == 0
    env.close()


@pytest.mark.parametrize("content", [b"", b"\xff\xfe", b"7x", b"9" * 5_000, b"-3"])
def test_an_unreadable_id_does_not_count(server, process, folder, content):
    (env,) = process()
    env.reset(seed=0)
    env.close()
    (note,) = folder.glob("*/0.id")
    note.write_bytes(content)
    for _ in range(2):
        (env,) = process()
        env.reset(seed=0)
        env.close()
    assert server.used("/reset") == [501, 502, 502]


def test_the_room_for_an_id_is_there_before_it_is_known(server, process, folder):
    """On a disk that is full since, what was written is written over."""
    before = []
    server.ids = iter([2**63])
    server.at["/create"] = lambda: before.extend(file.stat() for file in folder.glob("*/0.id"))
    for _ in range(2):
        (env,) = process()
        env.reset(seed=0)
        env.close()
    (note,) = folder.glob("*/0.id")
    assert [(file.st_size, file.st_ino) for file in before] == [(note.stat().st_size, note.stat().st_ino)]
    assert server.used("/reset") == [2**63] * 2


def test_where_an_id_cannot_be_saved_its_environment_is_used_again_here(server, process, monkeypatch, caplog):
    (env,) = process()
    with monkeypatch.context() as patch:
        server.at["/create"] = lambda: patch.setattr(Path, "open", full)
        env.reset(seed=0)
    assert [record.agentgym["event"] for record in caplog.records] == ["slot not saved"]
    env.close()
    env.reset(seed=0)
    assert server.used("/reset") == [501, 501]
