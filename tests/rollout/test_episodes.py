"""Episodes over environments of any kind, without verl."""

from __future__ import annotations

import asyncio
import math
import subprocess
import sys
import textwrap
import threading
import time

import gymnasium
import numpy as np
import pytest

import counting_env
import inside
import programs
from agentgym_gym.rollout import close_all
from clock import wait_until
from task_play import begin, play
from verl_bridge.numbers import numbers_of
from verl_bridge.tasks import EnvTask

COUNT = "counting_env:bridge/Count-v0"


@pytest.fixture(autouse=True)
def _closed():
    close_all()
    yield
    close_all()
    assert counting_env.opened == set()


def test_an_episode():
    episode, turns = play(EnvTask(COUNT, {"goal": 2}, {"start": 4}), "5", "x", "6")
    assert [turn.observation for turn in turns] == ["You are at 5.", "'x' is no number.", "You are at 6."]
    assert episode.rewards == [1.0, 0.0, 1.0]
    assert episode.over
    assert episode.fault is None
    counted = {"parse_errors": 0, "invalid_actions": 1, "ignored_actions": 0}
    counted |= {"retries": 0, "fault": 0, "replays": 0}
    assert numbers_of(episode) == {"return": 2, "success": 1, "turns": 3, **counted}


def test_the_first_observation_comes_from_this_reset():
    async def work():
        episode = await begin(EnvTask(COUNT, {}, {"start": 7}))
        await episode.end()
        return episode.observation

    assert asyncio.run(work()) == "Count from 7 to 10."


def test_an_environment_is_used_again_and_by_one_at_a_time():
    async def work():
        first = await begin(EnvTask(COUNT))
        second = await begin(EnvTask(COUNT))
        assert len(counting_env.opened) == 2
        await first.end()
        await first.end()
        third = await begin(EnvTask(COUNT, {}, {"start": 9}))
        other = await begin(EnvTask(COUNT, {"goal": 1}))
        assert len(counting_env.opened) == 3
        assert third.observation == "Count from 9 to 12."
        assert third.rewards == []
        for episode in (second, third, other):
            await episode.end()

    asyncio.run(work())
    close_all()
    assert counting_env.opened == set()


def test_a_surplus_of_idle_environments_is_closed(monkeypatch):
    inside.limit_idle(monkeypatch, 2)

    async def work():
        episodes = [await begin(EnvTask(COUNT, {"goal": goal})) for goal in range(1, 6)]
        for episode in episodes:
            await episode.end()

    asyncio.run(work())
    wait_until(lambda: len(counting_env.opened) == 2)


@pytest.mark.parametrize(("where", "turns"), [("make", 0), ("reset", 0), ("step 0", 1), ("step 1", 2)])
def test_an_error_of_an_environment_is_the_fault(where, turns):
    episode, played = play(EnvTask(COUNT, {"faults": [where]}), *["1", "2"][:turns])
    assert episode.fault == {"kind": "RuntimeError", "message": f"broken at {where}"}
    assert episode.over
    counted = {"parse_errors": 0, "invalid_actions": 0, "ignored_actions": 0}
    counted |= {"retries": 0, "fault": 1, "replays": 0}
    assert numbers_of(episode) == {"return": 0, "success": 0, "turns": turns, **counted}
    if played:
        assert played[-1].truncated
        assert played[-1].info["fault"] == episode.fault
    assert counting_env.opened == set()  # not kept for reuse


class Odd(gymnasium.Env):
    """Returns given results, or raises them."""

    observation_space = gymnasium.spaces.Text(9)
    action_space = gymnasium.spaces.Text(9)

    def __init__(self, step=None, reset=("", {}), delay=0.0):
        self.answer, self.first, self.delay = step, reset, delay

    def reset(self, *, seed=None, options=None):
        if isinstance(self.first, BaseException):
            raise self.first
        return self.first

    def step(self, action):
        time.sleep(self.delay)
        if isinstance(self.answer, BaseException):
            raise self.answer
        return self.answer


gymnasium.register("bridge/Odd-v0", Odd)
ODD = "bridge/Odd-v0"


@pytest.mark.parametrize(
    ("step", "kind", "message"),
    [
        (("o", math.nan, False, False, {}), "ValueError", "the reward is nan"),
        (("o", "much", False, False, {}), "TypeError", "the reward should be a number"),
        ((b"o", 0.0, False, False, {}), "TypeError", "should be text, not bytes"),
        (("o", 0.0, False, False, None), "TypeError", "should be a mapping"),
        (("o", 0.0, False, {}), "TypeError", "should return observation, reward"),
        (("o", 0.0, False, True, {"fault": {"kind": "Lost", "message": "m"}}), "Lost", "m"),
        (("o", 0.0, False, True, {"fault": "in words"}), "Fault", "in words"),
        (SystemExit(3), "RuntimeError", "SystemExit: 3"),
        (StopIteration(), "RuntimeError", "StopIteration"),
        (TimeoutError("its own"), "TimeoutError", "its own"),
        (asyncio.CancelledError(), "RuntimeError", "CancelledError"),
    ],
    ids=lambda value: repr(value)[:40],
)
def test_an_invalid_result_is_a_fault(step, kind, message):
    episode, _ = play(EnvTask(ODD, {"step": step}), "a", timeout=30)
    assert episode.fault["kind"] == kind
    assert message in episode.fault["message"]
    assert episode.rewards == [0.0]


@pytest.mark.parametrize(("reset", "kind"), [(("o", {"fault": "f"}), "Fault"), (("o",), "TypeError")])
def test_a_reset_can_be_a_fault_too(reset, kind):
    episode, _ = play(EnvTask(ODD, {"reset": reset}))
    assert episode.fault["kind"] == kind
    assert episode.record(agent="a").turns == 0


@pytest.mark.parametrize(
    ("reward", "info", "success_at", "success"),
    [
        (1.0, {}, None, None),
        (0.0, {}, None, None),
        (1.0, {}, 1.0, True),
        (0.9, {}, 1.0, False),
        (1.0, {"success": False}, 1.0, False),
        (0.0, {"success": np.True_}, 1.0, True),
        (0.0, {"success": None}, None, None),
        (1.0, {"success": "yes"}, None, None),
    ],
)
@pytest.mark.parametrize("terminated", [True, False])
def test_success(reward, terminated, info, success_at, success):
    """What the info states, else the threshold, else unknown: nothing is inferred from ``terminated``."""
    task = EnvTask(ODD, {"step": ("o", reward, terminated, True, info)}, success_at=success_at)
    episode, _ = play(task, "a")
    assert episode.success is success
    assert math.isnan(numbers_of(episode)["success"]) == (success is None)
    assert episode.record(agent="a").success is success


def test_the_registered_reward_threshold_is_the_default():
    gymnasium.register("bridge/Threshold-v0", Odd, reward_threshold=0.5)
    turn = ("o", 0.5, True, False, {})
    episode, _ = play(EnvTask("bridge/Threshold-v0", {"step": turn}), "a")
    assert episode.success is True


@pytest.mark.parametrize("key", ["parse_error", "invalid_action"])
def test_invalid_actions(key):
    turn = ("o", 0.0, False, False, {key: "unknown_action"})
    episode, _ = play(EnvTask(ODD, {"step": turn}), "a", "b")
    assert episode.invalid_actions == 2
    assert episode.parse_errors.total() == (2 if key == "parse_error" else 0)


@pytest.mark.parametrize(
    ("ignored", "counted"), [(["get 1 log", "look"], 4), (("look",), 2), ([], 0), (None, 0), ("look", 0)]
)
def test_ignored_actions(ignored, counted):
    turn = ("o", 0.0, False, False, {"action": "inventory", "ignored_actions": ignored})
    episode, _ = play(EnvTask(ODD, {"step": turn}), "a", "b")
    assert episode.ignored_actions == counted


@pytest.mark.parametrize(("played", "kept"), [(1, 1), (None, 0), (7, 2), (-1, 0), (True, 0), ("1", 0)])
def test_which_call_was_played(played, kept):
    info = {"action": "inventory", "ignored_actions": ["fly", "look"], "played_call": played}
    episode, _ = play(EnvTask(ODD, {"step": ("o", 0.0, False, False, info)}), "a")
    assert episode.steps[0]["played_call"] == kept


def test_an_ended_episode_cannot_be_stepped():
    with pytest.raises(RuntimeError, match="start another"):
        play(EnvTask(COUNT, {"goal": 1}), "1", "2")


def test_one_step_at_a_time():
    async def work():
        episode = await begin(EnvTask(ODD, {"step": ("o", 0.0, False, False, {}), "delay": 0.2}))
        first = asyncio.create_task(episode.step("a"))
        await asyncio.sleep(0)
        with pytest.raises(RuntimeError, match="await it first"):
            await episode.step("b")
        await first
        await episode.end()

    asyncio.run(work())


def test_many_blocking_steps_run_at_once_without_the_executor_of_asyncio():
    """64 steps, each of which ends when all have started; the executor has fewer threads."""
    all_begun = threading.Barrier(64)

    async def work():
        episodes = [await begin(EnvTask(ODD, {"step": ("o", 0.0, True, False, {})})) for _ in range(64)]
        for episode in episodes:
            env = episode.env.unwrapped
            env.step = lambda action, step=env.step: (all_begun.wait(60), step(action))[1]
        await asyncio.gather(*(episode.step("a") for episode in episodes))
        names = {thread.name for thread in threading.enumerate()}
        await asyncio.gather(*(episode.end() for episode in episodes))
        return [episode.fault for episode in episodes], names

    faults, names = asyncio.run(work())
    assert faults == [None] * 64
    assert not any(name.startswith("asyncio_") for name in names)


def test_an_environment_that_does_not_answer_is_a_fault_and_closed_when_it_has():
    task = EnvTask(COUNT, {"goal": 3})
    held = threading.Event()

    async def work():
        episode = await begin(task)
        inside.limit_calls(episode, 0.2)
        env = episode.env.unwrapped
        answer, env.step = env.step, lambda action: (held.wait(10), answer(action))[1]
        turn = await episode.step("1")
        await episode.end()
        return turn

    turn = asyncio.run(work())
    assert turn.info["fault"] == {
        "kind": "TimeoutError",
        "message": "no answer from the environment in 0.2 s",
    }
    assert len(counting_env.opened) == 1  # the thread is still in it
    held.set()
    wait_until(lambda: counting_env.opened == set())


def test_a_cancelled_step_never_leads_to_reuse():
    begun, held = threading.Event(), threading.Event()

    async def work():
        episode = await begin(EnvTask(COUNT))
        env = episode.env.unwrapped
        answer, env.step = env.step, lambda action: (begun.set(), held.wait(10), answer(action))[2]

        async def playing():
            try:
                await episode.step("1")
            finally:
                await episode.end()

        task = asyncio.create_task(playing())
        assert await asyncio.to_thread(begun.wait, 30)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        other = await begin(EnvTask(COUNT))
        assert other.env.unwrapped is not env
        await other.end()
        assert env.number in counting_env.opened
        held.set()
        await asyncio.to_thread(wait_until, lambda: env.number not in counting_env.opened)

    asyncio.run(work())


def test_an_environment_whose_creation_was_cancelled_is_closed(monkeypatch):
    begun, held = threading.Event(), threading.Event()
    made = counting_env.Count.__init__

    def slowly(self, *args, **kwargs):
        begun.set()
        held.wait(10)
        made(self, *args, **kwargs)

    monkeypatch.setattr(counting_env.Count, "__init__", slowly)

    async def work():
        task = asyncio.create_task(begin(EnvTask(COUNT)))
        assert await asyncio.to_thread(begun.wait, 30)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(work())
    closed = []
    monkeypatch.setattr(
        counting_env.Count,
        "close",
        lambda self: (closed.append(self.number), counting_env.opened.discard(self.number)),
    )
    held.set()
    wait_until(lambda: closed)


@pytest.mark.parametrize("env_id", ["bridge/None-v0", "no_such_module:bridge/None-v0"])
def test_an_unregistered_environment_is_an_error(env_id):
    with pytest.raises(ValueError, match=f"'{env_id}' is not registered|cannot import 'no_such_module'"):
        play(EnvTask(env_id))


def test_no_environment_is_left_open_after_many_episodes_with_faults():
    async def one(number):
        task = EnvTask(COUNT, {"goal": 1 + number % 3, "rate": 0.05, "seed": number % 7})
        episode = await begin(task)
        try:
            while not episode.over:
                at = len(episode.rewards)
                await episode.step(str(at + 1))
        finally:
            await episode.end()
        return numbers_of(episode)

    async def all_of_them():
        return await asyncio.gather(*map(one, range(200)))

    records = asyncio.run(all_of_them())
    assert 0 < sum(record["fault"] for record in records) < 100
    close_all()
    assert counting_env.opened == set()


@pytest.mark.slow  # a separate program
def test_a_program_ends_though_an_environment_hangs_and_closes_the_idle_ones():
    program = """
        import asyncio, threading, time
        import gymnasium
        import counting_env
        from verl_bridge.tasks import EnvTask

        class Loud(counting_env.Count):
            def close(self):
                print("closed", flush=True)

        class Hangs(counting_env.Count):
            def step(self, action):
                time.sleep(1_000)

        gymnasium.register("Loud-v0", Loud)
        gymnasium.register("Hangs-v0", Hangs)

        async def work():
            idle = await EnvTask("Loud-v0").episode().begin()
            await idle.end()
            hangs = await EnvTask("Hangs-v0").episode(timeout=1).begin()
            await hangs.step("1")
            await hangs.end()
            print(hangs.fault["kind"])

        asyncio.run(work())
    """
    ended = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        env=programs.environment(),
        capture_output=True,
        text=True,
        timeout=30,
        check=True,
    )
    assert ended.stdout.split() == ["TimeoutError", "closed"]


@pytest.mark.slow  # a separate program
def test_the_runtime_needs_gymnasium_only():
    program = "import sys, agentgym_gym.rollout; print(*{name.partition('.')[0] for name in sys.modules})"
    ended = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True
    )
    heavy = {"torch", "verl", "ray", "transformers", "httpx", "pandas", "pyarrow", "openai", "typer", "rich"}
    assert heavy.isdisjoint(ended.stdout.split())
    assert "gymnasium" in ended.stdout.split()
