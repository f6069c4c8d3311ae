"""Episodes over environments whose methods are coroutines."""

from __future__ import annotations

import asyncio
import sys
import time
import types
from typing import ClassVar

import gymnasium
import pytest

import inside
from agentgym_gym.rollout import EnvMaker, close_all
from clock import wait_until
from task_play import begin, play
from verl_bridge.tasks import EnvTask


@pytest.fixture(autouse=True)
def _closed():
    close_all()
    yield
    close_all()
    assert Awaited.opened == set()


class Awaited(gymnasium.Env):
    """Has coroutines for methods; remembers in which event loops it was called."""

    observation_space = gymnasium.spaces.Text(9)
    action_space = gymnasium.spaces.Text(9)
    opened: ClassVar[set[int]] = set()

    def __init__(self):
        self.loops = set()
        self.opened.add(id(self))

    async def reset(self, *, seed=None, options=None):
        self.loops.add(id(asyncio.get_running_loop()))
        return f"seed {seed}", {}

    async def step(self, action):
        self.loops.add(id(asyncio.get_running_loop()))
        if action == "cancel":
            raise asyncio.CancelledError
        if action == "fail":
            raise RuntimeError("it failed")
        await asyncio.sleep(100 if action == "long" else 0.01)
        return action, 1.0, action == "end", False, {}

    async def close(self):
        await asyncio.sleep(0)
        self.opened.discard(id(self))


gymnasium.register("bridge/Awaited-v0", Awaited, max_episode_steps=3)
AWAITED = "bridge/Awaited-v0"


class Plain:
    """The same without gymnasium's base class, whose methods are not coroutines."""

    def __init__(self, size=1):
        self.size = size

    async def reset(self, *, seed=None, options=None):
        return f"seed {seed}", {}

    async def step(self, action):
        return f"size {self.size}", 1.0, False, False, {}

    async def close(self):
        pass


class Sync(gymnasium.Env):
    """Names the class above as the one to be awaited."""

    metadata: ClassVar = {"asynchronous_entry_point": "awaited_of_a_user:Plain"}


gymnasium.register("bridge/Plain-v0", Sync, max_episode_steps=3, kwargs={"size": 2})


@pytest.mark.parametrize(
    ("kwargs", "size", "steps"), [({}, 2, 3), ({"size": 5, "max_episode_steps": 2}, 5, 2)]
)
def test_a_class_to_be_awaited_need_not_be_gymnasiums(monkeypatch, kwargs, size, steps):
    module = types.ModuleType("awaited_of_a_user")
    module.Plain = Plain
    monkeypatch.setitem(sys.modules, module.__name__, module)
    episode, turns = play(EnvTask("bridge/Plain-v0", seed=5, env_kwargs=kwargs), *["a"] * steps)
    assert episode.observation == f"size {size}"
    assert [turn.truncated for turn in turns] == [*[False] * (steps - 1), True]


def test_coroutines_are_awaited_in_the_event_loop():
    async def work():
        episode = await begin(EnvTask(AWAITED, seed=5))
        assert episode.observation == "seed 5"
        env = episode.env
        await episode.step("a")
        assert (await episode.step("end")).terminated
        await episode.end()
        assert env.loops == {id(asyncio.get_running_loop())}
        again = await begin(EnvTask(AWAITED))
        assert again.env is env
        await again.end()

    asyncio.run(work())
    close_all()
    assert Awaited.opened == set()


def test_an_environment_is_closed_although_its_event_loop_is_busy(monkeypatch, caplog):
    inside.limit_close(monkeypatch, 0.2)
    seen = []

    async def close(env):
        seen.append(id(asyncio.get_running_loop()))
        for _ in range(3):
            await asyncio.sleep(0.01)
        env.opened.discard(id(env))

    monkeypatch.setattr(Awaited, "close", close)

    async def work():
        episode = await begin(EnvTask(AWAITED))

        async def fail():
            await episode.step("fail")  # so that the environment is not reused
            await episode.end()

        ending = asyncio.ensure_future(fail())
        while not seen:  # noqa: ASYNC110 - of no event that could be awaited
            await asyncio.sleep(0)
        time.sleep(0.5)  # noqa: ASYNC251 - others' work that does not let go of the loop
        await ending
        wait_until(lambda: not Awaited.opened)

    asyncio.run(work())
    assert len(set(seen)) == 2
    assert caplog.text == ""


def test_an_environment_of_another_event_loop_is_not_reused():
    async def work():
        episode = await begin(EnvTask(AWAITED))
        await episode.end()
        return episode

    asyncio.run(work())
    asyncio.run(work())
    assert len(Awaited.opened) == 2
    close_all()
    assert Awaited.opened == set()


def test_the_registered_step_limit_applies_without_the_wrapper_too():
    episode, turns = play(EnvTask(AWAITED), "a", "b", "c")
    assert [turn.truncated for turn in turns] == [False, False, True]
    assert episode.over


def test_a_coroutine_that_cancels_itself_is_a_fault():
    episode, _ = play(EnvTask(AWAITED), "cancel")
    assert episode.fault["kind"] == "RuntimeError"
    assert Awaited.opened == set()


def test_a_cancelled_coroutine_is_closed():
    async def work():
        episode = await begin(EnvTask(AWAITED))

        async def playing():
            try:
                await episode.step("long")
            finally:
                await episode.end()

        task = asyncio.create_task(playing())
        await asyncio.sleep(0.05)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(work())
    assert Awaited.opened == set()


def test_a_coroutine_that_takes_too_long_is_a_fault():
    episode, _ = play(EnvTask(AWAITED), "long", timeout=0.1)
    assert episode.fault["kind"] == "TimeoutError"
    assert Awaited.opened == set()


def test_the_properties_of_an_environment_are_read_without_playing_it():
    facts = EnvMaker(AWAITED).facts()
    assert (facts.env_id, facts.awaited, facts.max_turns, facts.system_prompt) == (AWAITED, True, 3, None)
    assert Awaited.opened == set()
