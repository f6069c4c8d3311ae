"""The awaitable environment does what the other does, and nothing is lost when it is not let finish."""

from __future__ import annotations

import asyncio
import copy
import gc
import random
import ssl

import gymnasium
import httpx
import numpy as np
import pytest
from gymnasium.error import ResetNeeded

from agentgym_gym import AgentGymEnv, AsyncAgentGymEnv, errors
from agentgym_gym.envs.textcraft import Inventory
from agentgym_gym.testing import FaultyProxy

NO_TLS = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # or httpx would read all certificates for each client


def exists(url: str, env_id: int) -> bool:
    return "error" not in httpx.get(f"{url}/observation", params={"id": env_id}, verify=NO_TLS).json()


REPLIES = [
    "Action: inventory",
    "Thought: hm",
    "",
    "Action: get 1 oak logs",
    "Action: fly\n",
    "\ud800",
    Inventory(),
]


def test_both_environments_return_the_same_turn_by_turn(textcraft_url):
    rng = random.Random(0)  # noqa: S311
    script = [(task, [rng.choice(REPLIES) for _ in range(6)]) for task in rng.sample(range(300), 8)]
    options = {"server": textcraft_url, "max_turns": 5, "render_mode": "ansi"}

    def play_sync():
        env = AgentGymEnv("TextCraft", **options)
        for task, replies in script:
            yield env.reset(options={"task_id": task})
            for reply in replies[:5]:
                yield env.step(reply)
            with pytest.raises(ResetNeeded):
                env.step(replies[5])
            yield env.render()
        env.close()

    async def play_async():
        env, said = AsyncAgentGymEnv("TextCraft", **options), []
        for task, replies in script:
            said.append(await env.reset(options={"task_id": task}))
            said.extend([await env.step(reply) for reply in replies[:5]])
            with pytest.raises(ResetNeeded):
                await env.step(replies[5])
            said.append(env.render())
        await env.close()
        return said

    assert list(play_sync()) == asyncio.run(play_async())


def test_a_seed_draws_the_same_tasks_in_both(textcraft_url):
    sync = AgentGymEnv("TextCraft", server=textcraft_url)
    expected = [sync.reset(seed=5)[1]["task_id"], *(sync.reset()[1]["task_id"] for _ in range(3))]
    sync.close()

    async def draw():
        env = AsyncAgentGymEnv("TextCraft", server=textcraft_url)
        drawn = [
            (await env.reset(seed=5))[1]["task_id"],
            *[(await env.reset())[1]["task_id"] for _ in range(3)],
        ]
        await env.close()
        return drawn

    assert asyncio.run(draw()) == expected


def test_it_has_the_same_attributes_as_the_other(textcraft_url):
    one, two = (
        kind("TextCraft", server=textcraft_url, max_turns=3) for kind in (AgentGymEnv, AsyncAgentGymEnv)
    )
    for name in (
        "system_prompt",
        "tools",
        "tasks",
        "servers",
        "observation_space",
        "action_space",
    ):
        assert getattr(one, name) == getattr(two, name)
    assert repr(two) == "Async" + repr(one)
    assert repr(copy.deepcopy(two)) == repr(two)
    assert two.unwrapped is two
    assert not isinstance(two, gymnasium.Env)  # whose methods are no coroutines


def test_async_with_closes_it(textcraft_url):
    async def play():
        async with AsyncAgentGymEnv("TextCraft", server=textcraft_url) as env:
            await env.reset(seed=0)
            env_id = env._episode.lease.env_id
        return env, env_id

    env, env_id = asyncio.run(play())
    assert env._episode.lease is None
    assert not exists(textcraft_url, env_id)


def test_it_has_the_attributes_of_an_environment():
    env = AsyncAgentGymEnv("TextCraft")
    assert env.spec is None
    assert env.render() is None
    assert env.np_random_seed >= 0
    assert env.np_random.integers(5) < 5
    assert env.metadata["render_modes"] == ["ansi"]
    assert env.action_space.sample() in env.action_space


def test_many_play_at_once_and_are_given_back(textcraft_url):
    async def play(task):
        env = AsyncAgentGymEnv("TextCraft", server=textcraft_url)
        await env.reset(options={"task_id": task})
        env_id = env._episode.lease.env_id
        turns = [await env.step("Action: inventory") for _ in range(3)]
        assert env.stats.connections == 1
        assert env.stats.requests >= 5
        await env.close()
        return env_id, [info["task_id"] for *_, info in turns]

    async def all_of_them():
        return await asyncio.gather(*(play(task) for task in range(10)))

    played = asyncio.run(all_of_them())
    assert len({env_id for env_id, _ in played}) == 10
    assert [tasks for _, tasks in played] == [[task] * 3 for task in range(10)]
    assert not any(exists(textcraft_url, env_id) for env_id, _ in played)


@pytest.mark.parametrize("second", ["step", "close"])
def test_one_task_at_a_time(textcraft_url, second):
    """The call that is refused does not disturb the other one."""

    async def both():
        env = AsyncAgentGymEnv("TextCraft", server=textcraft_url)
        await env.reset(seed=0)
        first = asyncio.ensure_future(env.step("Action: inventory"))
        await asyncio.sleep(0)
        with pytest.raises(errors.InUse):
            await (env.close() if second == "close" else env.step("Action: inventory"))
        assert "fault" not in (await first)[4]
        await env.close()

    asyncio.run(both())


def test_it_continues_in_another_event_loop(textcraft_url):
    env = AsyncAgentGymEnv("TextCraft", server=textcraft_url)
    loops = [asyncio.new_event_loop() for _ in range(2)]
    loops[0].run_until_complete(env.reset(seed=0))
    turn = loops[1].run_until_complete(env.step("Action: inventory"))
    assert "fault" not in turn[4]
    loops[1].run_until_complete(env.close())
    assert env.stats.connections == 2
    for loop in loops:
        loop.run_until_complete(asyncio.sleep(0))
        loop.close()


def test_a_loop_that_ends_takes_its_connections_with_it(textcraft_url):
    env = AsyncAgentGymEnv("TextCraft", server=textcraft_url)
    for _ in range(3):
        asyncio.run(env.reset(seed=0))  # an open socket that nobody closed would be a warning
    asyncio.run(env.close())
    assert env.stats.connections == 4


def test_a_cancelled_step_ends_the_episode_and_leaves_nothing(textcraft_url):
    async def cancel():
        env = AsyncAgentGymEnv("TextCraft", server=textcraft_url)
        await env.reset(options={"task_id": 0})
        env_id = env._episode.lease.env_id
        step = asyncio.ensure_future(env.step("Action: inventory"))
        for _ in range(3):  # until it is sent
            await asyncio.sleep(0)
        step.cancel()
        with pytest.raises(asyncio.CancelledError):
            await step
        with pytest.raises(ResetNeeded):
            await env.step("Action: inventory")
        _, info = await env.reset(options={"task_id": 1})
        assert info["task_id"] == 1
        await env.close()
        return env_id

    assert not exists(textcraft_url, asyncio.run(cancel()))


def test_a_silent_server_blocks_no_other(textcraft_url, silent_url):
    async def play():
        held_up = AsyncAgentGymEnv("TextCraft", server=silent_url, timeout={"create": 60})
        env = AsyncAgentGymEnv("TextCraft", server=textcraft_url)
        waiting = asyncio.ensure_future(held_up.reset(seed=0))
        for _ in range(3):
            await env.reset(seed=0)
        assert not waiting.done()
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        await held_up.close()
        await env.close()

    asyncio.run(play())


def test_a_dropped_environment_releases_its_lease(textcraft_url):
    async def drop():
        env = AsyncAgentGymEnv("TextCraft", server=textcraft_url)
        await env.reset(seed=0)
        env_id = env._episode.lease.env_id
        del env
        gc.collect()
        for _ in range(200):
            await asyncio.sleep(0.05)
            if not exists(textcraft_url, env_id):
                return True
        return False

    assert asyncio.run(drop())


def test_a_fault_is_raised_where_it_is_wanted(silent_url):
    async def play():
        env = AsyncAgentGymEnv("TextCraft", server=silent_url, timeout=0.2)
        with pytest.raises(errors.ServerTimeout):
            await env.reset(seed=0)
        assert env.stats.faults == {"ServerTimeout": 1}
        await env.close()

    asyncio.run(play())


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"http_client": httpx.Client(transport=httpx.MockTransport(lambda request: None))}, "AsyncClient"),
        ({"timeout": 0}, "timeout=0"),
        ({"timeout": {"step": float("inf")}}, "timeout\\['step'\\]=inf"),
        ({"timeout": {"steps": 3}}, "'steps'"),
        ({"max_turns": 0}, "max_turns=0"),
    ],
)
def test_bad_options_are_named(options, said):
    with pytest.raises(errors.BadOption, match=said):
        AsyncAgentGymEnv("TextCraft", **options)


def test_limits_by_stage(textcraft_url):
    env = AgentGymEnv("TextCraft", server=textcraft_url, timeout={"step": 7, "connect": 2})
    assert (env._limits.step, env._limits.connect, env._limits.reset) == (7, 2, 300)
    env = AgentGymEnv("TextCraft", server=textcraft_url, timeout=np.float64(3))
    assert (env._limits.step, env._limits.connect, env._limits.close) == (3, 3, 3)


def test_a_close_that_the_server_refuses_is_counted(textcraft_url):
    async def play(url):
        env = AsyncAgentGymEnv("TextCraft", server=url)
        await env.reset(seed=0)
        await env.close()
        return env.stats.faults

    with FaultyProxy(textcraft_url, share=1, kinds=["error"], stages=["close"]) as proxy:
        assert asyncio.run(play(proxy.url)) == {"ServerError": 1}
        alone = AgentGymEnv("TextCraft", server=proxy.url)
        alone.reset(seed=0)
        alone.close()
        assert alone.stats.faults == {"ServerError": 1}


def test_without_asyncio_the_error_has_advice(textcraft_url):
    """As under trio, which runs coroutines in its own event loop."""
    resetting = AsyncAgentGymEnv("TextCraft", server=textcraft_url).reset(seed=0)
    with pytest.raises(errors.SetupError, match="AgentGymEnv"):
        resetting.send(None)


def test_resets_that_fail_at_once_let_other_tasks_run(counted):
    """While the circuit is open no request is sent, and nothing is awaited."""
    server = counted()
    server.held_up.add("/create")
    env = AsyncAgentGymEnv("TextCraft", server=server.url, timeout={"create": 0.05})
    turns = 0

    async def others():
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    async def main():
        other = asyncio.ensure_future(others())
        for _ in range(3):  # timeouts open the circuit
            with pytest.raises(errors.ServerTimeout):
                await env.reset(seed=0)
        before = turns
        for _ in range(10):
            with pytest.raises(errors.ServerUnreachable, match="circuit open"):
                await env.reset(seed=0)
        other.cancel()
        return turns - before

    assert asyncio.run(main()) >= 10
    server.let_go.set()
