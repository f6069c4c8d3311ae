"""Pools: environments are reused, limited by their capacity, and none is lost."""

from __future__ import annotations

import asyncio
import random
import threading
import time
from typing import ClassVar

import gymnasium
import pytest

import counting_env
from agentgym_gym.errors import BadOption
from agentgym_gym.rollout import CallerPool, Episode, Pool, close_all


class Counted(gymnasium.Env):
    """Counts how many are open."""

    observation_space = gymnasium.spaces.Text(9)
    action_space = gymnasium.spaces.Text(9)
    capacity: ClassVar[int | None] = None
    open: ClassVar[set[int]] = set()
    most: ClassVar[int] = 0
    made: ClassVar[int] = 0
    fail: ClassVar[int] = 0
    _lock = threading.Lock()

    def __init__(self):
        with self._lock:
            cls = type(self)
            cls.made += 1
            if cls.made <= cls.fail:
                raise RuntimeError("no session is free")
            self.open.add(id(self))
            cls.most = max(cls.most, len(self.open))

    def reset(self, *, seed=None, options=None):
        return "begin", {}

    def step(self, action):
        if action == "fail":
            raise RuntimeError("failed")
        return action, 0.0, False, False, {}

    def close(self):
        with self._lock:
            self.open.discard(id(self))


class AwaitedCounted(Counted):
    """The same with coroutines."""

    async def reset(self, *, seed=None, options=None):
        return "begin", {}

    async def step(self, action):
        await asyncio.sleep(0)
        return super().step(action)

    async def close(self):
        await asyncio.sleep(0)
        super().close()


@pytest.fixture(autouse=True)
def _counted(monkeypatch):
    for cls in (Counted, AwaitedCounted):
        for name, value in (("made", 0), ("most", 0), ("open", set())):
            monkeypatch.setattr(cls, name, value)
    yield
    close_all()
    assert Counted.open == set()
    assert AwaitedCounted.open == set()


async def turns(pool, number):
    async with pool.episode() as episode:
        for _ in range(3):
            await asyncio.sleep(0.001)
            if not episode.over:
                await episode.step("fail" if number % 5 == 0 else "go")
    return episode.fault


@pytest.mark.parametrize("make_env", [Counted, AwaitedCounted])
@pytest.mark.parametrize("given", [True, False])
def test_the_capacity_holds(monkeypatch, make_env, given):
    monkeypatch.setattr(make_env, "capacity", None if given else 3)

    async def work():
        async with Pool(make_env, capacity=3 if given else None) as pool:
            return await asyncio.gather(*(turns(pool, number) for number in range(1, 33)))

    faults = asyncio.run(work())
    assert sum(fault is not None for fault in faults) == 6
    assert make_env.most <= 3
    assert make_env.open == set()


def test_without_a_capacity_as_many_are_made_as_play():
    async def work():
        async with Pool(Counted) as pool:
            episodes = await asyncio.gather(*(pool.episode().begin() for _ in range(9)))
            assert len(Counted.open) == 9
            for episode in episodes:
                await episode.end()

    asyncio.run(work())


def test_a_first_environment_that_cannot_be_created_blocks_no_waiter(monkeypatch):
    monkeypatch.setattr(Counted, "fail", 2)

    async def work():
        async with Pool(Counted, capacity=2) as pool:
            return await asyncio.wait_for(asyncio.gather(*(turns(pool, n) for n in (1, 2, 3, 4, 6))), 20)

    faults = asyncio.run(work())
    assert sum(fault is not None for fault in faults) == 2


def test_cancelled_waiters_lose_no_place():
    """Episodes that wait, play and are cancelled at random: none is left waiting, no place is lost."""
    draw = random.Random(0)  # noqa: S311

    async def work():
        async with Pool(AwaitedCounted, capacity=2) as pool:
            for _ in range(60):
                tasks = [asyncio.create_task(turns(pool, number)) for number in range(1, 7)]
                for task in tasks:
                    await asyncio.sleep(draw.choice([0, 0, 0.001, 0.002]))
                    if draw.random() < 0.5:
                        task.cancel()
                done = await asyncio.wait_for(asyncio.gather(*tasks, return_exceptions=True), 20)
                assert all(not isinstance(each, Exception) for each in done)
            assert AwaitedCounted.most <= 2
            fresh = await asyncio.wait_for(asyncio.gather(pool.episode().begin(), pool.episode().begin()), 5)
            for episode in fresh:
                await episode.end()

    asyncio.run(work())


@pytest.mark.parametrize("make_env", [Counted, AwaitedCounted])
def test_an_episode_cancelled_at_any_point_leaves_its_place(make_env):
    """In the making of the environment, in the wait for a place, in the reset, in a step, in the end."""

    async def work():
        async with Pool(make_env, capacity=1) as pool:
            for rounds in range(40):
                tasks = [asyncio.create_task(turns(pool, number)) for number in (1, 2)]
                for _ in range(rounds):
                    await asyncio.sleep(0)
                tasks[rounds % 2].cancel()
                done = await asyncio.wait_for(asyncio.gather(*tasks, return_exceptions=True), 20)
                assert done[1 - rounds % 2] is None
            assert make_env.most == 1

    asyncio.run(work())
    assert make_env.open == set()


@pytest.mark.parametrize("make_env", [Counted, AwaitedCounted])
def test_two_event_loops_share_a_pool(make_env):
    pool = Pool(make_env, capacity=2)
    faults = {}

    def play(name):
        async def work():
            return await asyncio.wait_for(asyncio.gather(*(turns(pool, 1) for _ in range(30))), 30)

        faults[name] = asyncio.run(work())

    threads = [threading.Thread(target=play, args=(name,)) for name in "ab"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert faults == {"a": [None] * 30, "b": [None] * 30}
    assert make_env.most <= 2


@pytest.mark.parametrize("how", ["cancelled", "stopped"])
def test_an_environment_whose_event_loop_ends_while_it_is_closed(how):
    pool, idle, closing = Pool(AwaitedCounted), threading.Event(), threading.Event()

    async def work():
        async with pool.episode() as episode:
            await episode.step("go")
        idle.set()
        closing.wait(30)  # the event loop runs, but nothing in it
        time.sleep(0.1)  # noqa: ASYNC251 - until the close is scheduled

    def play():
        if how == "cancelled":
            asyncio.run(work())
        else:
            loop = asyncio.new_event_loop()
            loop.run_until_complete(work())
            stopped.append(loop)

    stopped = []
    thread = threading.Thread(target=play)
    thread.start()
    assert idle.wait(30)
    other = threading.Thread(target=close_all)
    other.start()
    closing.set()
    for each in (thread, other):
        each.join(30)
    assert AwaitedCounted.open == set()
    for loop in stopped:
        loop.run_until_complete(asyncio.sleep(0))  # what it had scheduled closes nothing twice
        loop.run_until_complete(asyncio.sleep(0.01))
        loop.close()


def test_the_same_environment_is_used_again():
    async def work():
        async with Pool(Counted) as pool:
            for _ in range(5):
                async with pool.episode() as episode:
                    await episode.step("go")

    asyncio.run(work())
    assert Counted.made == 1


def test_an_environment_is_closed_after_an_exception_but_not_after_a_reported_fault(monkeypatch):
    class Stated(RuntimeError):
        transient = True

    def step(self, action):
        raise Stated(action)

    async def work():
        async with Pool(Counted) as pool:
            for action in ("fail", "go"):
                async with pool.episode() as episode:
                    await episode.step(action)
            assert Counted.made == 2
            monkeypatch.setattr(Counted, "step", step)
            for _ in range(2):
                async with pool.episode() as episode:
                    await episode.step("go")
                assert episode.transient
            assert Counted.made == 2

    asyncio.run(work())


def test_an_environment_of_the_caller_is_neither_closed_nor_awaited():
    env = Counted()
    episode = Episode(CallerPool(env))

    async def play():
        async with episode:
            await episode.step("go")
            await episode.step("fail")

    with pytest.raises(StopIteration):  # without an event loop
        play().send(None)
    assert episode.fault == {"kind": "RuntimeError", "message": "failed"}
    assert env.open
    env.close()


def test_arguments_go_with_an_id():
    with pytest.raises(BadOption, match="env_kwargs require the id"):
        Pool(Counted, {"size": 3})


def test_the_facts_of_an_environment(monkeypatch):
    monkeypatch.setattr(Counted, "capacity", True)  # no number

    async def work():
        async with Pool(Counted) as pool:
            return await pool.facts()

    facts = asyncio.run(work())
    assert (facts.env_id, facts.capacity, facts.system_prompt) == (f"{__name__}:Counted", None, None)


@pytest.mark.parametrize("make_env", [Counted, AwaitedCounted])
def test_the_facts_are_known_while_all_places_are_taken(make_env):
    """Others may look them up during an episode, though only the episode gives its place back."""

    async def work():
        async with Pool(make_env, capacity=1) as pool, pool.episode() as episode:
            facts = await asyncio.wait_for(pool.facts(), 20)
            turn = await episode.step("go")
            return facts, turn.observation

    facts, observation = asyncio.run(work())
    assert (facts.env_id, observation) == (f"{__name__}:{make_env.__name__}", "go")
    assert make_env.made == 1


@pytest.mark.parametrize("env", ["counting_env:bridge/Count-v0", "bridge/Count-v0"])
def test_the_id_of_its_environments(env):
    assert Pool(env).env_id == "bridge/Count-v0"


def test_a_function_has_no_id():
    assert Pool(counting_env.Count).env_id == ""
