"""The event loop touches no file: slots and records are read and written in other threads."""

from __future__ import annotations

import asyncio
import json
import socket
import subprocess
import sys
import textwrap
import threading

import pytest

from agentgym_gym import AsyncAgentGymEnv, _threads
from agentgym_gym._http.async_driver import AsyncDriver
from agentgym_gym._http.limits import Limits
from agentgym_gym._http.sync_driver import SyncDriver
from agentgym_gym._leasing import journal as journals
from agentgym_gym._leasing import slots as slot_files
from agentgym_gym._leasing import state_folder
from agentgym_gym._leasing.acquire import acquire_on
from agentgym_gym._leasing.pool import LeasePool
from agentgym_gym.calls import Call, InThread
from by_hand import Listing, make

SQLGYM = {
    "/": "ok",
    "/list_envs": [],
    "/create": 7,
    "/reset": ["Which?\n\nAll.", None],
    "/step": {"state": "[]", "reward": 0, "done": False},
}

# An audit hook cannot be removed, so this is a program of its own. Events are kept as (thread, event, what).
PROGRAM = """
    import asyncio, contextlib, json, sys, threading
    from pathlib import Path

    import gymnasium

    from agentgym_gym import AsyncAgentGymEnv, errors
    from agentgym_gym._leasing import slots as slot_files, state_folder

    folder, textcraft, sqlgym, slow, nobody = sys.argv[1:]
    state_folder.FOLDER = Path(folder)
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
def test_the_event_loop_touches_no_file(counted):
    slow = counted(SQLGYM)
    slow.held_up.add("/create")
    with socket.create_server(("127.0.0.1", 0)) as free:
        nobody = f"http://127.0.0.1:{free.getsockname()[1]}"
    urls = [counted().url, counted(SQLGYM).url, slow.url, nobody]
    ended = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(PROGRAM), str(state_folder.FOLDER), *urls],
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


# -------------------------------------------------------------------------------------- how a driver does it


class Gate:
    """Work for a thread that lasts until it is let go."""

    def __init__(self):
        self.begun, self.let_go = threading.Event(), threading.Event()

    def __call__(self):
        self.begun.set()
        assert self.let_go.wait(30)
        return threading.current_thread()


def driver():
    return AsyncDriver(limits=Limits())


def fails():
    raise OSError("no space left")


def two_threads():
    first = yield InThread(threading.current_thread)
    second = yield InThread(threading.current_thread)
    return first, second


def survives():
    try:
        yield InThread(fails)
    except OSError as error:
        return str(error)


def test_a_flow_goes_on_with_what_its_function_returned_or_raised():
    async def main():
        assert await driver().run(survives()) == "no space left"
        threads = await driver().run(two_threads())
        assert threading.current_thread() not in threads
        assert all(thread.daemon for thread in threads)  # which keep no program from ending

    asyncio.run(main())
    here = SyncDriver(limits=Limits())
    assert here.run(survives()) == "no space left"
    assert here.run(two_threads()) == (threading.current_thread(),) * 2


def test_what_the_flow_does_not_handle_is_raised():
    def flow():
        yield InThread(fails)

    async def main():
        with pytest.raises(OSError, match="no space"):
            await driver().run(flow())

    asyncio.run(main())
    with pytest.raises(OSError, match="no space"):
        SyncDriver(limits=Limits()).run(flow())


def test_where_no_thread_can_be_started_the_function_is_called_in_place(monkeypatch):
    def refuse(_):
        raise RuntimeError("can't start new thread")

    async def main():
        monkeypatch.setattr(_threads, "_files", _threads._Workers("files", 4))
        monkeypatch.setattr(threading.Thread, "start", refuse)
        assert await driver().run(two_threads()) == (threading.current_thread(),) * 2

    asyncio.run(main())


@pytest.mark.parametrize("then", ["returns", "asks", "fails", "has more done"])
def test_a_flow_that_is_cancelled_learns_what_its_function_returned_first(then):
    gate, learnt, more = Gate(), [], []

    def flow():
        learnt.append((yield InThread(gate)))
        if then == "asks":
            yield Call("reset", "POST", "/reset", server="http://127.0.0.1:1")
            raise AssertionError("it is not sent")
        if then == "fails":
            raise ValueError
        if then == "has more done":
            yield InThread(lambda: more.append("done"))

    async def main():
        task = asyncio.ensure_future(driver().run(flow()))
        await asyncio.to_thread(gate.begun.wait, 30)
        task.cancel()
        await asyncio.sleep(0)
        assert not task.done()
        gate.let_go.set()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert len(learnt) == 1
    assert more == ["done"] * (then == "has more done")


def test_a_flow_whose_event_loop_is_closed_learns_it_too():
    gate, ended = Gate(), threading.Event()

    def flow():
        try:
            assert (yield InThread(gate)) is not None
            assert (yield InThread(lambda: 7)) == 7
            yield Call("reset", "POST", "/reset", server="http://127.0.0.1:1")
        finally:
            ended.set()

    async def begin():
        return driver().run(flow())

    loop = asyncio.new_event_loop()
    future = loop.run_until_complete(begin())
    assert gate.begun.wait(30)
    loop.close()
    gate.let_go.set()
    assert ended.wait(30)
    assert not future.done()


class Gated(slot_files.Slots):
    """Slots that are given when they are let go."""

    def __init__(self, server, number):
        super().__init__(server, number)
        self.gate = Gate()

    def take(self):
        slot = super().take()
        self.gate()
        return slot


def test_a_task_that_is_cancelled_while_a_slot_is_taken_loses_no_slot():
    pool = LeasePool(make(Listing()), "http://hand")
    pool.identified = True
    pool.slots = Gated("http://hand", 1)

    async def main():
        task = asyncio.ensure_future(driver().run(acquire_on(pool, 0)))
        await asyncio.to_thread(pool.slots.gate.begun.wait, 30)
        task.cancel()
        await asyncio.sleep(0)
        pool.slots.gate.let_go.set()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert pool.load == 0
    slot = pool.slots.take()
    assert slot is not None
    slot.release()


def test_an_environment_that_is_made_while_its_task_is_cancelled_is_closed(counted, monkeypatch):
    """The reply to /create is there, and its record is being written."""
    server, gate = counted(), Gate()
    flush = journals.LeaseJournal.flush
    monkeypatch.setattr(journals.LeaseJournal, "flush", lambda journal: (gate(), flush(journal)))

    async def main():
        env = AsyncAgentGymEnv("TextCraft", server=server.url)
        resetting = asyncio.create_task(env.reset(seed=0))
        await asyncio.to_thread(gate.begun.wait, 30)
        resetting.cancel()
        await asyncio.sleep(0)
        gate.let_go.set()
        with pytest.raises(asyncio.CancelledError):
            await resetting
        assert len(server.open) == 1
        await env.close()

    asyncio.run(main())
    assert server.open == set()
    assert "/reset" not in server.asked
    assert [list(each.ids) for each in journals.records(server.url)] in ([], [[]])
