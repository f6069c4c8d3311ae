"""Calls that never return take no place from those that do."""

from __future__ import annotations

import asyncio
import threading
import time

import gymnasium
import pytest

from verl_bridge import environments
from verl_bridge.episodes import Episode, Task, close_all
from verl_bridge.threads import Threads

MAY_RETURN = threading.Event()


class Hangs(gymnasium.Env):
    """Its step returns when it may, its reset at once."""

    observation_space = gymnasium.spaces.Text(9)
    action_space = gymnasium.spaces.Text(9)

    def reset(self, *, seed=None, options=None):
        return "begin", {}

    def step(self, action):
        if action == "hang":
            MAY_RETURN.wait(30)
        return "went on", 1.0, False, False, {}


gymnasium.register("bridge/Hangs-v0", Hangs)
gymnasium.register("bridge/Heals-v0", Hangs)
HANGS, HEALTHY = Task("bridge/Hangs-v0"), Task("bridge/Heals-v0")


@pytest.fixture(autouse=True)
def _released():
    MAY_RETURN.clear()
    yield
    MAY_RETURN.set()
    close_all()


async def a_turn(task, action, timeout):
    episode = await Episode.begin(task, timeout=timeout)
    try:
        if episode.fault is None:
            await episode.step(action)
        return episode.fault
    finally:
        await episode.end()


async def hung_and_healthy(hung, healthy, timeout):
    hanging = [asyncio.create_task(a_turn(HANGS, "hang", timeout)) for _ in range(hung)]
    await asyncio.sleep(0.05)
    faults = await asyncio.gather(*(a_turn(HEALTHY, "go", timeout) for _ in range(healthy)))
    return await asyncio.gather(*hanging), faults


@pytest.mark.slow
def test_calls_that_hang_in_every_thread_fail_alone(monkeypatch):
    threads = Threads(4, "hung", 32)
    monkeypatch.setattr(environments, "_threads", threads)
    for _ in range(2):
        hung, healthy = asyncio.run(hung_and_healthy(6, 8, timeout=1.5))
        assert healthy == [None] * 8
        assert {fault["kind"] for fault in hung} == {"TimeoutError"}
    MAY_RETURN.set()
    deadline = time.monotonic() + 5
    while threads.running() or threads._abandoned:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    hung, healthy = asyncio.run(hung_and_healthy(6, 8, timeout=5))
    assert (hung, healthy) == ([None] * 6, [None] * 8)
    own = [each for each in threading.enumerate() if each.name.startswith("hung-")]
    assert len(own) <= threads.limit


def test_hundreds_of_hung_calls_do_not_make_others_wait():
    """More than a worker ever had threads: the others are answered at once."""

    async def work():
        hanging = [asyncio.create_task(a_turn(HANGS, "hang", 5)) for _ in range(300)]
        await asyncio.sleep(0.3)
        healthy = await asyncio.gather(*(a_turn(HEALTHY, "go", 2) for _ in range(20)))
        still = sum(not task.done() for task in hanging)
        MAY_RETURN.set()
        return healthy, still, await asyncio.gather(*hanging)

    healthy, still, hung = asyncio.run(work())
    assert healthy == [None] * 20
    assert still == 300
    assert hung == [None] * 300


@pytest.mark.slow
def test_where_no_place_can_be_given_up_the_fault_names_who_holds_them(monkeypatch):
    monkeypatch.setattr(environments, "_threads", Threads(3, "full", 2))
    asyncio.run(hung_and_healthy(3, 0, timeout=0.1))
    asyncio.run(hung_and_healthy(2, 0, timeout=0.1))
    _, faults = asyncio.run(hung_and_healthy(0, 1, timeout=0.1))
    (fault,) = faults
    assert "no thread was free for a call of the environment in time: 3 may run at once" in fault["message"]
    assert "bridge/Hangs-v0 (5)" in fault["message"]


def test_a_call_that_was_given_up_closes_its_environment_when_it_returns():
    closed = []

    class Closing(Hangs):
        def close(self):
            closed.append(self)

    gymnasium.register("bridge/Closing-v0", Closing)
    asyncio.run(asyncio.wait_for(a_turn(Task("bridge/Closing-v0"), "hang", timeout=0.1), 5))
    assert closed == []
    MAY_RETURN.set()
    deadline = time.monotonic() + 5
    while not closed:
        assert time.monotonic() < deadline
        time.sleep(0.01)
