"""What a process holds is persisted, for when it dies."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import filelock
import gymnasium
import pytest

import inside
import programs
from agentgym_gym import AgentGymEnv, errors
from unusable_folders import a_file_in_its_place, a_read_only_file_system, full, no_folder


@pytest.fixture
def server(counted):
    return counted()


@pytest.fixture
def folder(tmp_path, monkeypatch):
    inside.keep_files_in(tmp_path / "files", monkeypatch)
    return tmp_path / "files"


def begun(server, number=1):
    """Return environments that were reset: the server gives them ids from 0."""
    envs = [AgentGymEnv("TextCraft", server=server.url) for _ in range(number)]
    for env in envs:
        env.reset(seed=0)
    return envs


def recorded(server):
    return [list(each.ids) for each in inside.records(server.url)]


FORKS = """
    import gc, os, sys
    from agentgym_gym import AgentGymEnv

    envs = [AgentGymEnv(name, server=url) for name, url in zip(("TextCraft", "SQLGym"), sys.argv[1:])]
    for env in envs:
        env.reset(seed=0)
    if os.fork() == 0:
        del env, envs
        gc.collect()
        sys.exit(0)
    os.wait()
    print("forked", flush=True)
    sys.stdin.read()
    for env in envs:
        env.close()
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_forked_child_that_ends_frees_nothing_of_its_parents(server, counted, tmp_path, monkeypatch):
    sql = counted({"/": "ok", "/list_envs": [], "/create": 7, "/reset": ["Which?", None]})
    with programs.start(
        [sys.executable, "-W", "error", "-c", textwrap.dedent(FORKS), server.url, sql.url],
        env=programs.environment(TMPDIR=str(tmp_path)),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as program:
        assert program.stdout.readline() == "forked\n"
        (folder,) = tmp_path.glob("agentgym-gym-*")
        inside.keep_files_in(folder, monkeypatch)
        (record,) = inside.records(server.url)
        assert (record.alive, list(record.ids)) == (True, [0])
        (slot,) = folder.glob("*/0.lock")
        with pytest.raises(filelock.Timeout):
            filelock.FileLock(slot, timeout=0).acquire()
        _, problems = program.communicate(timeout=60)
    assert (program.returncode, problems) == (0, "")
    assert inside.records(server.url) == []
    assert server.open == set()


def a_full_disk(monkeypatch, tmp_path):
    monkeypatch.setattr(Path, "write_text", full)
    monkeypatch.setattr(Path, "touch", full)


def no_locks(monkeypatch, tmp_path):
    def acquire(*_args):
        raise NotImplementedError("no locks on this file system")

    monkeypatch.setattr(filelock.FileLock, "acquire", acquire)


def a_file_in_place_of_the_record(monkeypatch, tmp_path):
    mkdir = Path.mkdir

    def spoil(path, *args, **options):
        path.touch() if path.name.endswith("-TextCraft") else mkdir(path, *args, **options)

    monkeypatch.setattr(Path, "mkdir", spoil)


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
    server, monkeypatch, tmp_path, caplog, nowhere, kind
):
    nowhere(monkeypatch, tmp_path)
    inside.warn_again(monkeypatch)
    for _ in range(2):
        if kind == "sync":
            (env,) = begun(server)
            assert env.step("Action: inventory")[0] == "You did inventory."
        else:
            env = gymnasium.make_vec("agentgym/TextCraft-v0", num_envs=3, server=server.url)
            env.reset(seed=0)
            assert set(env.step(["Action: inventory"] * 3)[0]) == {"You did inventory."}
        env.close()
    assert server.open == set()
    events = [record for record in caplog.records if record.levelname == "WARNING"]
    assert [record.agentgym["event"] for record in events] == ["held ids not saved"]


def test_failed_records_are_written_as_soon_as_possible(server, monkeypatch):
    with monkeypatch.context() as patch:
        a_full_disk(patch, None)
        envs = begun(server, 3)
    envs[0].close()
    assert recorded(server) == [[1, 2]]


@pytest.mark.parametrize("operation", ["touch", "unlink"])
def test_failed_records_are_written_with_the_next_environment(server, monkeypatch, operation):
    working = getattr(Path, operation)

    def fails_for_one(path, *args, **options):
        if path.name == "0":
            raise OSError(errno.ENOSPC, "no space left on the device")
        working(path, *args, **options)

    envs = begun(server) if operation == "unlink" else []
    with monkeypatch.context() as patch:
        patch.setattr(Path, operation, fails_for_one)
        envs = envs or begun(server)
        if operation == "unlink":
            envs[0].close()
    envs += begun(server)
    assert recorded(server) == ([[0, 1]] if operation == "touch" else [[1]])


@pytest.mark.parametrize("what", ["", "held/*", "held/*/lock", "held/*/about.json"])
def test_records_removed_while_the_program_runs_are_written_again(server, folder, what):
    """As programs do that tidy up temporary files."""
    envs = begun(server, 2)
    made = inside.records(server.url)[0].ids
    for path in folder.glob(what) if what else [folder]:
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    envs += begun(server)
    (record,) = inside.records(server.url)
    assert record.alive
    assert list(record.ids) == [0, 1, 2]
    assert {env_id: record.ids[env_id] for env_id in (0, 1)} == pytest.approx(made, abs=1e-3)
    envs[0].close()
    assert recorded(server) == [[1, 2]]


def test_a_record_is_removed_also_while_another_thread_writes_it(server, folder, monkeypatch):
    """As an environment that is closed in one thread while another writes all records again."""
    (env,) = begun(server)
    shutil.rmtree(folder)
    touch, being_written = Path.touch, threading.Event()

    def close():
        assert being_written.wait(30)
        env.close()

    closing = threading.Thread(target=close)

    def slow(path, *args, **options):
        if path.name == "0":
            being_written.set()
            closing.join(0.3)  # it has to wait for this thread, or is quicker
        touch(path, *args, **options)

    monkeypatch.setattr(Path, "touch", slow)
    closing.start()
    others = begun(server)
    closing.join()
    assert recorded(server) == [[1]]
    others[0].close()


@pytest.mark.parametrize(
    "content", ["", "{", "null", "[]", '{"pid": null, "began": 1}', "\xff", "[" * 100_000]
)
def test_a_record_whose_process_cannot_be_read_is_listed_all_the_same(server, folder, content):
    (env,) = begun(server)
    (about,) = folder.glob("held/*/about.json")
    about.write_bytes(content.encode("latin-1"))
    (record,) = inside.records(server.url)
    assert (record.pid, record.alive, list(record.ids)) == (None, True, [0])
    env.close()


@pytest.mark.slow  # a separate program
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
env = gymnasium.make("agentgym/TextCraft-v0", server="http://never.test")
env = gymnasium.make("agentgym/SQLGym-v0", server="http://never.test")
env.close()
print(touched)
"""
    ended = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], check=False, capture_output=True, text=True
    )
    assert (ended.stdout, ended.stderr) == ("[]\n", "")


def test_leased_ids_are_persisted_until_closed_or_lost_with_the_server(server):
    envs = begun(server, 4)
    assert recorded(server) == [[0, 1, 2, 3]]
    envs[0].close()
    server.held_up.add("/close")
    inside.limit_times(envs[1], close=0.1)
    envs[1].close()  # the server may have closed it
    assert recorded(server) == [[1, 2, 3]]
    server.stop()
    with pytest.raises(errors.ServerUnreachable):
        begun(server)
    assert recorded(server) == [[]]


def test_records_that_are_removed_while_they_are_read_are_left_out(server, folder):
    begun(server)[0].close()
    (record,) = folder.glob("held/*/*-TextCraft")
    inside.forget_held()
    held, over = folder / "held", threading.Event()

    def come_and_go():
        while not over.is_set():
            for process in "abcd":
                (held / process / record.name).mkdir(parents=True)
            shutil.rmtree(held)

    others = threading.Thread(target=come_and_go)
    others.start()
    try:
        assert [inside.records(server.url) for _ in range(500)] == [[]] * 500
    finally:
        over.set()
        others.join()
