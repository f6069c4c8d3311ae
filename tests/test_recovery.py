"""A server that dies in the middle of an episode, over a real socket."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import textwrap
import threading

import httpx
import pytest

from agentgym_gym import AgentGymEnv, AsyncAgentGymEnv, errors
from agentgym_gym import local_servers as local
from agentgym_gym.local_servers import LocalServer
from interrupts import PACKAGE, interrupted, points_of, run_as_asyncio, spread


def restart(server: LocalServer) -> LocalServer:
    again = LocalServer("textcraft", port=int(server.url.rpartition(":")[2]))
    again.start()
    return again


@pytest.mark.slow
def test_a_killed_server_is_a_fault_and_not_a_zero(server):
    """The new server does not have the environments of the old one."""
    env, thinking = (AgentGymEnv("TextCraft", server=server.url) for _ in range(2))
    thinking.reset(options={"task_id": 0})
    env.reset(options={"task_id": 0})
    env.step("Action: inventory")
    server.process.send_signal(signal.SIGKILL)
    server.process.wait()
    observation, reward, terminated, truncated, info = env.step("Action: inventory")
    assert (reward, terminated, truncated) == (0.0, False, True)
    assert info["fault"]["kind"] in {"ServerUnreachable", "ConnectionLost"}
    assert observation in env.observation_space
    with pytest.raises(errors.ServerUnreachable):
        env.reset(options={"task_id": 0})
    again = restart(server)
    _, info = env.reset(options={"task_id": 0})
    assert info["task_id"] == 0
    assert "fault" not in env.step("Action: inventory")[4]
    *_, truncated, info = thinking.step("Action: inventory")
    assert (truncated, info["fault"]["kind"]) == (True, "LeaseLost")
    for each in (env, thinking):
        each.reset(options={"task_id": 0})
        assert "fault" not in each.step("Action: inventory")[4]
        each.close()
    again.stop()


def test_a_replica_that_is_down_is_passed_over(counted, textcraft_url):
    down = counted()
    down.stop()
    env = AgentGymEnv("TextCraft", server=[down.url, textcraft_url])
    env.reset(seed=0)
    assert env._episode.lease.server == textcraft_url
    env.close()


@pytest.mark.slow
def test_the_shared_local_server_is_started_when_needed_and_again_when_it_died():
    env = AgentGymEnv("TextCraft")
    env.reset(seed=0)
    first = local._servers[env.environment.local_server].process
    first.kill()
    first.wait()
    assert "fault" in env.step("Action: inventory")[4]
    env.reset(seed=0)
    assert local._servers[env.environment.local_server].process.pid != first.pid
    assert "fault" not in env.step("Action: inventory")[4]
    env.close()


@pytest.mark.slow
def test_at_exit_environments_are_given_back_before_the_local_server_stops(textcraft_url):
    """A program that never calls close() leaves nothing on a server that outlives it."""
    code = f"""
        import gymnasium, agentgym_gym
        local = gymnasium.make("agentgym/TextCraft-v0")
        local.reset(seed=0)
        env = gymnasium.make("agentgym/TextCraft-v0", server={textcraft_url!r})
        env.reset(seed=0)
        print(env.unwrapped._episode.lease.env_id)
    """
    run = subprocess.run(
        [sys.executable, "-W", "error", "-c", textwrap.dedent(code)],
        capture_output=True,
        text=True,
        check=True,
    )
    assert run.stderr == ""
    theirs = httpx.get(f"{textcraft_url}/observation", params={"id": int(run.stdout)}).json()
    assert "error" in theirs


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_forked_child_does_not_use_what_it_inherits(textcraft_url):
    code = f"""
        import os, sys, gymnasium, agentgym_gym
        env = gymnasium.make("agentgym/TextCraft-v0", server={textcraft_url!r})
        env.reset(seed=0)
        if os.fork() == 0:
            *_, info = env.step("Action: inventory")
            assert info["fault"]["kind"] == "LeaseLost", info
            env.reset(seed=0)
            assert "fault" not in env.step("Action: inventory")[4]
            env.close()
            sys.exit(0)
        assert os.wait()[1] == 0
        assert "fault" not in env.step("Action: inventory")[4]
    """
    run = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr


class Awaited:
    """An `AsyncAgentGymEnv` whose methods are run as `asyncio.run` runs a coroutine."""

    def __init__(self, *args, **options):
        self.env = AsyncAgentGymEnv(*args, **options)
        self.loop = asyncio.new_event_loop()

    def reset(self, **options):
        return run_as_asyncio(self.loop, self.env.reset(**options))

    def step(self, action):
        return run_as_asyncio(self.loop, self.env.step(action))

    def close(self):
        run_as_asyncio(self.loop, self.env.close())


# The garbage collector warns of connections that were being opened or closed.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.usefixtures("garbage_collected")
@pytest.mark.parametrize("what", ["reset", "step", "close"])
@pytest.mark.parametrize(
    ("kind", "within", "number"),
    [
        pytest.param(AgentGymEnv, PACKAGE, 120, id="sync", marks=pytest.mark.slow),
        pytest.param(AgentGymEnv, None, 100, id="sync, other code too", marks=pytest.mark.slow),
        pytest.param(Awaited, PACKAGE, 120, id="async", marks=pytest.mark.slow),
        pytest.param(AgentGymEnv, PACKAGE, 1_000, id="all, sync", marks=pytest.mark.exhaustive),
        pytest.param(Awaited, PACKAGE, 1_000, id="all, async", marks=pytest.mark.exhaustive),
    ],
)
def test_wherever_it_is_interrupted_the_environment_continues(counted, kind, what, within, number):
    server = counted()
    env = kind("TextCraft", server=server.url)
    operation = {
        "reset": lambda: env.reset(options={"task_id": 2}),
        "step": lambda: env.step("Action: get 1 oak logs"),
        "close": env.close,
    }[what]
    tried, missed, strange = [], [], []

    def interrupt_everywhere():
        env.reset(options={"task_id": 1})
        for point in spread(points_of(operation, within=within), number):
            env.reset(options={"task_id": 1})
            tried.append(point)
            if not interrupted(operation, point):
                missed.append(str(point))
            if len(tried) % 2:
                env.close()
            env.reset(options={"task_id": 1})
            observation, *_, info = env.step("Action: inventory")
            if observation != "You did inventory." or "fault" in info:
                strange.append((str(point), observation, info.get("fault")))
        env.close()

    # In a thread, since one way to fail is to wait for a lock without end.
    thread = threading.Thread(target=interrupt_everywhere, daemon=True)
    thread.start()
    thread.join(60)
    assert not thread.is_alive(), f"it waits after {tried[-1]}"
    assert strange == []
    assert len(tried) >= 100
    assert len(missed) <= len(tried) // 10, missed  # one run may take another way than the first
