"""What a process holds is persisted, for when it dies."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import filelock
import gymnasium
import pytest

from agentgym_gym import AgentGymEnv, errors
from agentgym_gym._leasing import journal as journals
from agentgym_gym._leasing import state_folder
from agentgym_gym._leasing.acquire import acquire_on
from agentgym_gym._leasing.pool import LeasePool
from by_hand import DOWN, IDENTIFY, LOST, HandWire, created, make, play
from unusable_folders import a_file_in_its_place, a_read_only_file_system, full, no_folder


@pytest.fixture
def pool():
    return LeasePool(make(HandWire()), "http://hand")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_forked_child_that_ends_frees_nothing_of_its_parents():
    code = f"""
import gc, os, sys
from pathlib import Path
from agentgym_gym._leasing import journal as journals, slots as slot_files, state_folder
state_folder.FOLDER = Path({str(state_folder.FOLDER)!r})
slot = slot_files.Slots("http://hand", 1).take()
journal = journals.LeaseJournal("Hand", "http://hand")
journal.add(7)
journal.flush()
if os.fork() == 0:
    del slot, journal
    gc.collect()
    sys.exit(0)
os.wait()
print(slot_files.slot_states("http://hand")[0].taken, [(each.alive, list(each.ids)) for each in journals.records("http://hand")])
slot.release()
journal.discard(7)
journal.flush()
"""
    ended = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], check=True, capture_output=True, text=True
    )
    assert (ended.stdout, ended.stderr) == ("True [(True, [7])]\n", "")
    assert journals.records("http://hand") == []


def a_full_disk(monkeypatch, tmp_path):
    monkeypatch.setattr(Path, "write_text", full)
    monkeypatch.setattr(Path, "touch", full)


def no_locks(monkeypatch, tmp_path):
    def acquire(*_args):
        raise NotImplementedError("no locks on this file system")

    monkeypatch.setattr(filelock.FileLock, "acquire", acquire)


def a_file_in_place_of_the_record(monkeypatch, tmp_path):
    write = journals.LeaseJournal._write

    def spoil(journal):
        folder = journals._this_process().folder / journal._name
        if not folder.exists():
            folder.touch()
        write(journal)

    monkeypatch.setattr(journals.LeaseJournal, "_write", spoil)


@pytest.mark.parametrize("kind", ["sync", "vector"])
@pytest.mark.parametrize(
    "nowhere",
    [
        no_folder,
        a_file_in_its_place,
        a_read_only_file_system,
        a_full_disk,
        no_locks,
        a_file_in_place_of_the_record,
    ],
)
def test_where_nothing_can_be_written_all_is_played_and_it_is_logged_once(
    counted, monkeypatch, tmp_path, caplog, nowhere, kind
):
    server = counted()
    nowhere(monkeypatch, tmp_path)
    monkeypatch.setattr(journals, "_warned", set())
    for _ in range(2):
        if kind == "sync":
            env = AgentGymEnv("TextCraft", server=server.url)
            env.reset(seed=0)
            assert env.step("Action: inventory")[0] == "You did inventory."
        else:
            env = gymnasium.make_vec("agentgym/TextCraft-v0", num_envs=3, server=server.url)
            env.reset(seed=0)
            assert set(env.step(["Action: inventory"] * 3)[0]) == {"You did inventory."}
        env.close()
    assert server.open == set()
    events = [record for record in caplog.records if record.levelname == "WARNING"]
    assert [record.agentgym["event"] for record in events] == ["held ids not saved"]


def test_what_could_not_be_written_is_written_when_it_can_be(pool, monkeypatch, caplog):
    with monkeypatch.context() as patch:
        a_full_disk(patch, None)
        leases = [play(acquire_on(pool, 0), *([] if n else [IDENTIFY]), created(n))[0] for n in range(3)]
    play(pool.release(leases[0]), ("close", True))
    assert [list(each.ids) for each in journals.records(pool.server)] == [[1, 2]]


@pytest.mark.parametrize("what", ["", "held/*", "held/*/lock", "held/*/about.json"])
def test_what_is_removed_while_the_program_runs_is_written_anew(pool, what):
    """As programs do that tidy up temporary files."""
    leases = [play(acquire_on(pool, 0), *([] if n else [IDENTIFY]), created(n))[0] for n in range(2)]
    made = journals.records(pool.server)[0].ids
    for path in state_folder.FOLDER.glob(what) if what else [state_folder.FOLDER]:
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    play(acquire_on(pool, 0), created(2))
    (record,) = journals.records(pool.server)
    assert record.alive
    assert list(record.ids) == [0, 1, 2]
    assert {env_id: record.ids[env_id] for env_id in (0, 1)} == pytest.approx(made, abs=1e-3)
    play(pool.release(leases[0]), ("close", True))
    assert [list(each.ids) for each in journals.records(pool.server)] == [[1, 2]]


@pytest.mark.parametrize("said", ["", "{", "null", "[]", '{"pid": null, "began": 1}', "\xff", "[" * 100_000])
def test_a_record_whose_process_cannot_be_read_is_told_all_the_same(pool, said):
    play(acquire_on(pool, 0), IDENTIFY, created(7))
    (about,) = state_folder.FOLDER.glob("held/*/about.json")
    about.write_bytes(said.encode("latin-1"))
    (record,) = journals.records(pool.server)
    assert (record.pid, record.alive, list(record.ids)) == (None, True, [7])


def test_importing_touches_no_folder():
    code = """
import sys
import gymnasium, numpy, tempfile
touched = []
WRITES = ("os.mkdir", "os.rename", "os.remove", "os.rmdir", "tempfile.mkstemp", "tempfile.mkdtemp")
def watch(event, args):
    wrote = event == "open" and isinstance(args[1], str) and set(args[1]) & set("wax+")
    if wrote or event == "open" and args[1] is None or event in WRITES:
        touched.append((event, args))
sys.dont_write_bytecode = True
tempfile._candidate_tempdir_list = lambda: ["/nowhere"]
sys.addaudithook(watch)
import agentgym_gym
env = gymnasium.make("agentgym/TextCraft-v0", server="http://127.0.0.1:9")
env = gymnasium.make("agentgym/SQLGym-v0", server="http://127.0.0.1:9")
env.close()
print(touched)
"""
    ended = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], check=False, capture_output=True, text=True
    )
    assert (ended.stdout, ended.stderr) == ("[]\n", "")


def test_held_ids_are_persisted_until_they_are_closed_or_the_server_goes_away(pool):
    def persisted():
        return [env_id for each in journals.records(pool.server) for env_id in each.ids]

    leases = [play(acquire_on(pool, 0), *([] if n else [IDENTIFY]), created(n))[0] for n in range(4)]
    assert persisted() == [0, 1, 2, 3]
    play(pool.release(leases[0]), ("close", True))
    play(pool.release(leases[1]), ("close", LOST))  # who knows
    assert persisted() == [1, 2, 3]
    with pytest.raises(errors.ServerUnreachable):
        play(acquire_on(pool, 0), ("create", DOWN))
    assert persisted() == []


def test_changes_reach_the_disk_in_their_order_when_they_are_flushed():
    journal = journals.LeaseJournal("Hand", "http://hand")
    journal.add(1)
    assert journals.records("http://hand") == []
    journal.clear()
    journal.add(1)
    journal.add(2)
    journal.discard(2)
    journal.flush()
    assert [list(each.ids) for each in journals.records("http://hand")] == [[1]]


def test_records_that_are_removed_while_they_are_read_are_left_out():
    held, over = state_folder.base_folder() / "held", threading.Event()

    def come_and_go():
        while not over.is_set():
            for process in "abcd":
                (held / process / f"{state_folder.folder_name('http://hand')}-Hand").mkdir(parents=True)
            shutil.rmtree(held)

    others = threading.Thread(target=come_and_go)
    others.start()
    try:
        assert [journals.records("http://hand") for _ in range(1000)] == [[]] * 1000
    finally:
        over.set()
        others.join()
