"""Slots: what the processes of a machine share on a server with a fixed capacity."""

from __future__ import annotations

import json
import subprocess
import sys

import filelock
import pytest

import inside
from agentgym_gym import AgentGymEnv, errors
from agentgym_gym._leasing import slots as slot_files
from agentgym_gym._leasing import state_folder
from agentgym_gym._leasing.acquire import acquire_on
from agentgym_gym._leasing.pool import LeasePool
from agentgym_gym.calls import Reply
from by_hand import IDENTIFY, Listing, created, listed, make, play
from unusable_folders import a_file_in_its_place, a_read_only_file_system, full, no_folder


def other_process(wire):
    """What another process would have: a pool that knows nothing of this one's."""
    return LeasePool(make(wire), "http://hand")


def test_what_another_process_holds_is_not_taken():
    ours, theirs = other_process(Listing()), other_process(Listing())
    first, _ = play(acquire_on(ours, 0), IDENTIFY, listed(), created(501))
    second, _ = play(acquire_on(theirs, 0), IDENTIFY, listed(501), created(502))
    with pytest.raises(errors.ServerFull, match="processes of this machine"):
        play(acquire_on(ours, 0))
    play(theirs.release(second))
    again, _ = play(acquire_on(ours, 0), listed(501, 502))
    assert (again.env_id, again.fresh) == (502, False)  # what the other process left, and no third one
    assert first.env_id == 501


def test_what_someone_unknown_has_made_is_not_taken():
    pool = other_process(Listing())
    with pytest.raises(errors.ServerFull, match="restart"):
        play(acquire_on(pool, 0), IDENTIFY, listed(7, 8))
    assert pool.load == 0


def test_an_id_that_is_listed_already_is_not_taken_for_new():
    pool = other_process(Listing())
    with pytest.raises(errors.ServerFull, match="in use"):
        play(acquire_on(pool, 0), IDENTIFY, listed(7), created(7))


def test_an_id_of_before_a_restart_is_not_taken():
    pool = other_process(Listing())
    lease, _ = play(acquire_on(pool, 0), IDENTIFY, listed(), created(501))
    play(pool.release(lease))
    again, _ = play(acquire_on(other_process(Listing()), 0), IDENTIFY, listed(), created(640))
    assert (again.env_id, again.fresh) == (640, True)


def test_an_unusable_environment_is_left_out_of_its_slot():
    pool = other_process(Listing())
    lease, _ = play(acquire_on(pool, 0), IDENTIFY, listed(), created(501))
    lease.unusable = True
    play(pool.release(lease))
    again, _ = play(acquire_on(pool, 0), listed(501), created(502))
    assert again.env_id == 502


def test_a_slot_is_kept_while_a_request_may_still_run():
    ours, theirs = other_process(Listing()), other_process(Listing())
    for env_id in (501, 502):
        lease, _ = play(
            acquire_on(ours, 0), *([] if ours.identified else [IDENTIFY]), listed(), created(env_id)
        )
        lease.maybe_busy = True
        play(ours.release(lease))
    with pytest.raises(errors.ServerFull):
        play(acquire_on(theirs, 0), IDENTIFY)


def test_a_process_that_ends_leaves_its_slot():
    code = f"""
import os
from pathlib import Path
from agentgym_gym._leasing import slots as slot_files, state_folder
state_folder.FOLDER = Path({str(state_folder.FOLDER)!r})
taken = slot_files.Slots("http://hand", 1).take()
taken.env_id = 7
taken.save()
os._exit(0)
"""
    subprocess.run([sys.executable, "-c", code], check=True)
    slot = slot_files.Slots("http://hand", 1).take()
    assert slot.env_id == 7
    assert slot_files.Slots("http://hand", 1).take() is None
    slot.release()


def test_a_slot_that_is_released_soon_is_free_for_this_process_at_once():
    slots = slot_files.Slots("http://hand", 1)
    for env_id in range(20):
        slot = slots.take()
        assert slot.env_id == (env_id - 1 if env_id else None)
        slot.env_id = env_id
        slots.release_soon(slot)


def test_a_slot_that_is_dropped_is_free_again():
    """As it is where Ctrl-C comes between its being taken and its being kept."""
    slots = slot_files.Slots("http://hand", 1)
    assert slots.take() is not None
    slot = slots.take()
    assert slot is not None
    assert slots.take() is None
    slot.release()
    assert not slot.held


def test_a_flow_that_is_closed_releases_its_slot():
    pool = other_process(Listing())
    flow = acquire_on(pool, 0)
    asked = next(flow)
    while asked.stage != "identify":
        asked = flow.send(None)
    asked = flow.send(Reply(asked, 200, json.dumps(IDENTIFY[1]).encode()))
    asked = flow.send(asked.function())  # which takes the slot
    assert asked.stage == "observe"
    flow.close()  # what a driver does on Ctrl-C, or with a task that is cancelled
    assert pool.load == 0
    assert pool.slots.take() is not None


def a_full_disk(monkeypatch, tmp_path):
    monkeypatch.setattr(slot_files, "_write_id", full)


def no_locks(monkeypatch, tmp_path):
    def acquire(*_args):
        raise NotImplementedError("no locks on this file system")

    monkeypatch.setattr(filelock.FileLock, "acquire", acquire)


NOWHERE_TO_WRITE = [no_folder, a_file_in_its_place, a_read_only_file_system, a_full_disk, no_locks]


@pytest.mark.parametrize("nowhere", NOWHERE_TO_WRITE)
def test_where_no_slot_can_be_had_it_is_said_before_an_environment_is_made(
    counted, monkeypatch, tmp_path, nowhere
):
    server = counted({"/": "ok", "/list_envs": [], "/create": 7, "/reset": ["Which?", None]})
    nowhere(monkeypatch, tmp_path)
    for _ in range(3):
        env = AgentGymEnv("SQLGym", server=server.url)
        with pytest.raises(errors.SetupError, match=r"(the folder /|any folder).*TMPDIR"):
            env.reset(seed=0)
        env.close()
    assert "/create" not in server.asked
    assert inside.pool_at("SQLGym", server.url).load == 0


@pytest.mark.parametrize("said", [b"", b"\xff\xfe", b"7x", b"9" * 5_000, b"-3"])
def test_an_id_that_cannot_be_read_is_none(said):
    slots = slot_files.Slots("http://hand", 1)
    slots.take().release()
    (note,) = state_folder.FOLDER.glob("*/0.id")
    note.write_bytes(said)
    slot = slots.take()
    assert slot.env_id in {None, int("9" * 40)}
    slot.env_id = 12
    slot.release()
    assert slot_files.slot_states("http://hand") == [(12, False)]


def test_the_room_for_an_id_is_there_before_it_is_known(monkeypatch):
    """On a disk that is full since, what was written is written over."""
    slot = slot_files.Slots("http://hand", 1).take()
    (note,) = state_folder.FOLDER.glob("*/0.id")
    before = note.stat()
    slot.env_id = 2**63
    slot.release()
    assert (note.stat().st_size, note.stat().st_ino) == (before.st_size, before.st_ino)
    assert slot_files.Slots("http://hand", 1).take().env_id == 2**63


def test_where_an_id_cannot_be_saved_its_environment_is_used_again_here(monkeypatch, caplog):
    pool = other_process(Listing())
    fails = iter([False, True, False, False])
    write = slot_files._write_id
    monkeypatch.setattr(slot_files, "_write_id", lambda *args: full() if next(fails) else write(*args))
    lease, _ = play(acquire_on(pool, 0), IDENTIFY, listed(), created(501))
    assert [record.agentgym["event"] for record in caplog.records] == ["slot not saved"]
    play(pool.release(lease))
    again, _ = play(acquire_on(pool, 0))
    assert (again.env_id, again.fresh) == (501, False)
