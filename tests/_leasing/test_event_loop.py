"""The event loop touches no file: slots and records are read and written in other threads."""

from __future__ import annotations

import asyncio
import json
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
from agentgym_gym import AsyncAgentGymEnv, errors
from by_hand import HandServer, Small
from clock import wait_until
from unusable_folders import full

SQLGYM = {
    "/": "ok",
    "/list_envs": [],
    "/create": 7,
    "/reset": ["Which?\n\nAll.", None],
    "/step": {"state": "[]", "reward": 0, "done": False},
}

# An audit hook cannot be removed, so this is a separate program. Events are kept as (thread, event, what).
PROGRAM = """
    import asyncio, contextlib, json, sys, threading

    import gymnasium

    from agentgym_gym import AsyncAgentGymEnv, errors

    textcraft, sqlgym, slow, nobody = sys.argv[1:]
    watching, seen = False, []
    FILES = {"open", "fcntl.flock", "shutil.rmtree", "tempfile.mkdtemp", "pathlib.Path.glob"}

    def watch(event, args):
        if watching and (event in FILES or event.startswith("os.")):
            seen.append((threading.current_thread().name, event, repr(args)))

    async def play(env):
        for _ in range(2):
            await env.reset(seed=0)
            await env.step("inventory")
        await env.close()

    async def main():
        global watching
        envs = [AsyncAgentGymEnv("TextCraft", server=textcraft), AsyncAgentGymEnv("SQLGym", server=sqlgym)]
        cancelled = AsyncAgentGymEnv("SQLGym", server=slow)
        lost = AsyncAgentGymEnv("TextCraft", server=nobody)
        sys.addaudithook(watch)
        watching = True
        for env in envs:
            await play(env)
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(cancelled.reset(seed=0), 1)
        await cancelled.close()
        with contextlib.suppress(errors.ServerUnreachable):
            await lost.reset(seed=0)
        await lost.close()
        watching = False

    asyncio.run(main())
    several = gymnasium.make_vec("agentgym_gym:agentgym/TextCraft-v0", num_envs=3, server=textcraft)
    watching = True
    several.reset(seed=0)
    several.step(["inventory"] * 3)
    several.close()
    watching = False
    json.dump(seen, sys.stdout)
"""


@pytest.mark.slow
def test_the_event_loop_touches_no_file(counted, tmp_path):
    slow = counted(SQLGYM)
    slow.held_up.add("/create")
    nobody = counted()
    nobody.stop()
    urls = [counted().url, counted(SQLGYM).url, slow.url, nobody.url]
    ended = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(PROGRAM), *urls],
        env=programs.environment(TMPDIR=str(tmp_path)),
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert (ended.returncode, ended.stderr) == (0, "")
    seen = json.loads(ended.stdout)
    assert [each for each in seen if each[0] in {"MainThread", "agentgym-vector"}] == []
    touched = "".join(what for _, _, what in seen)
    assert all(name in touched for name in ("0.lock", "0.id", "about.json"))


# --------------------------------------------------------------------------------- how it is done in threads


class Gate:
    """Work for a thread that lasts until it is let go."""

    def __init__(self):
        self.begun, self.let_go = threading.Event(), threading.Event()

    def __call__(self):
        self.begun.set()
        assert self.let_go.wait(30)


@pytest.fixture
def touching(monkeypatch):
    """Calls a function whenever a record is about to be written, and notes in which threads that is."""
    touch, threads = Path.touch, []

    def call_first(function):
        def instead(path, *args, **options):
            threads.append(threading.current_thread())
            function()
            touch(path, *args, **options)

        monkeypatch.setattr(Path, "touch", instead)
        return threads

    return call_first


def test_records_are_written_in_threads_that_keep_no_program_from_ending(counted, touching):
    threads = touching(lambda: None)

    async def main():
        async with AsyncAgentGymEnv("TextCraft", server=counted().url) as env:
            await env.reset(seed=0)

    asyncio.run(main())
    assert len(threads) == 1
    assert threading.current_thread() not in threads
    assert threads[0].daemon


def test_where_no_thread_can_be_started_they_are_written_in_place(counted, touching, monkeypatch):
    server, start = counted(), threading.Thread.start
    threads = touching(lambda: None)

    def refuse(thread):
        if thread.name.startswith("agentgym"):
            raise RuntimeError("can't start new thread")
        start(thread)

    async def main():
        async with AsyncAgentGymEnv("TextCraft", server=server.url) as env:
            await env.reset(seed=0)

    inside.forget_threads(monkeypatch)
    monkeypatch.setattr(threading.Thread, "start", refuse)
    asyncio.run(main())
    assert threads == [threading.current_thread()]


def test_an_error_in_a_thread_is_raised(started, monkeypatch):
    by_hand.register(by_hand.make(Small()), monkeypatch)
    monkeypatch.setattr(filelock.FileLock, "acquire", full)

    async def main():
        async with AsyncAgentGymEnv("Hand", server=started(HandServer()).url) as env:
            with pytest.raises(errors.SetupError, match="No space left"):
                await env.reset(seed=0)

    asyncio.run(main())


def test_an_environment_created_while_its_event_loop_ends_is_recorded_and_closed_at_exit(counted, touching):
    server, gate = counted(), Gate()
    touching(gate)
    env = AsyncAgentGymEnv("TextCraft", server=server.url)
    loop = asyncio.new_event_loop()
    resetting = loop.create_task(env.reset(seed=0))
    loop.run_until_complete(asyncio.to_thread(gate.begun.wait, 30))
    loop.run_until_complete(loop.shutdown_default_executor())
    loop.close()
    gate.let_go.set()
    wait_until(lambda: [list(each.ids) for each in inside.records(server.url)] == [[0]])
    assert not resetting.done()
    inside.release_all()
    assert (server.most, server.open) == (1, set())
    assert "/reset" not in server.asked


def test_a_task_that_is_cancelled_while_a_slot_is_taken_loses_no_slot(started, monkeypatch):
    server, gate = started(HandServer()), Gate()
    by_hand.register(by_hand.make(Small()), monkeypatch)
    acquire = filelock.FileLock.acquire

    def gated(lock, *args, **options):
        acquire(lock, *args, **options)
        gate()

    async def main():
        env = AsyncAgentGymEnv("Hand", server=server.url)
        with monkeypatch.context() as patch:
            patch.setattr(filelock.FileLock, "acquire", gated)
            task = asyncio.ensure_future(env.reset(seed=0))
            await asyncio.to_thread(gate.begun.wait, 30)
            task.cancel()
            await asyncio.sleep(0)
            gate.let_go.set()
            with pytest.raises(asyncio.CancelledError):
                await task
        envs = [env, AsyncAgentGymEnv("Hand", server=server.url)]
        for each in envs:
            await each.reset(seed=0)
        for each in envs:
            await each.close()

    asyncio.run(main())
    assert server.times("/create") == 2


def test_an_environment_that_is_made_while_its_task_is_cancelled_is_closed(counted, touching):
    """The reply to /create is there, and its record is being written."""
    server, gate = counted(), Gate()
    touching(gate)

    async def main():
        env = AsyncAgentGymEnv("TextCraft", server=server.url)
        resetting = asyncio.create_task(env.reset(seed=0))
        await asyncio.to_thread(gate.begun.wait, 30)
        resetting.cancel()
        await asyncio.sleep(0)
        assert not resetting.done()
        gate.let_go.set()
        with pytest.raises(asyncio.CancelledError):
            await resetting
        assert len(server.open) == 1
        await env.close()

    asyncio.run(main())
    assert server.open == set()
    assert "/reset" not in server.asked
    assert [list(each.ids) for each in inside.records(server.url)] in ([], [[]])
