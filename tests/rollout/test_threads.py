"""Calls that never return take no place from other calls."""

from __future__ import annotations

import asyncio
import threading

import gymnasium
import pytest

import inside
from agentgym_gym.rollout import close_all
from clock import wait_until
from task_play import begin
from verl_bridge.tasks import EnvTask

MAY_RETURN = threading.Event()
HUNG = []


class Hangs(gymnasium.Env):
    """Its step returns when it may, its reset at once."""

    observation_space = gymnasium.spaces.Text(9)
    action_space = gymnasium.spaces.Text(9)

    def reset(self, *, seed=None, options=None):
        return "begin", {}

    def step(self, action):
        if action == "hang":
            HUNG.append(self)
            MAY_RETURN.wait(300)
        return "went on", 1.0, False, False, {}


gymnasium.register("bridge/Hangs-v0", Hangs)
gymnasium.register("bridge/Heals-v0", Hangs)
HANGS, HEALTHY = EnvTask("bridge/Hangs-v0"), EnvTask("bridge/Heals-v0")


@pytest.fixture(autouse=True)
def _released():
    MAY_RETURN.clear()
    HUNG.clear()
    yield
    MAY_RETURN.set()
    close_all()


async def a_turn(task, action, timeout):
    episode = await begin(task, timeout=timeout)
    try:
        if episode.fault is None:
            await episode.step(action)
        return episode.fault
    finally:
        await episode.end()


@pytest.mark.slow
def test_hundreds_of_hung_calls_do_not_make_others_wait():
    """More than the threads of a worker: the others are answered at once."""

    async def work():
        hanging = [asyncio.create_task(a_turn(HANGS, "hang", 240)) for _ in range(300)]
        try:
            await asyncio.to_thread(wait_until, lambda: len(HUNG) == 300, 60)
            healthy = await asyncio.gather(*(a_turn(HEALTHY, "go", 60) for _ in range(20)))
            still = sum(not task.done() for task in hanging)
        finally:
            MAY_RETURN.set()
        return healthy, still, await asyncio.gather(*hanging)

    healthy, still, hung = asyncio.run(work())
    assert healthy == [None] * 20
    assert still == 300
    assert hung == [None] * 300


def test_an_abandoned_call_closes_its_environment_on_return():
    closed = []

    class Closing(Hangs):
        def close(self):
            closed.append(self)

    gymnasium.register("bridge/Closing-v0", Closing)

    async def work():
        episode = await begin(EnvTask("bridge/Closing-v0"))
        inside.limit_calls(episode, 0.1)
        await episode.step("hang")
        await episode.end()

    asyncio.run(asyncio.wait_for(work(), 60))
    assert closed == []
    MAY_RETURN.set()
    wait_until(lambda: closed)
