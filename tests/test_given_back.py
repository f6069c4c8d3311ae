"""After trouble everything is given back, and nobody gets what another may still be using."""

from __future__ import annotations

import asyncio
import contextlib
import subprocess
import sys
import textwrap
import threading

import gymnasium
import httpx
import numpy as np
import pytest

import programs
from agentgym_gym import AgentGymEnv, AsyncAgentGymEnv, errors, local_servers
from awaited_env import Awaited
from counted_server import CountedServer
from fake_server import hang_up

LOOK = "Action: inventory"
TODO = "Action: get_projects with Action Input: {}"


both = pytest.mark.parametrize("kind", [AgentGymEnv, Awaited])


def cut_off_in_a_step(server, env, step):
    """Take a step whose connection is lost after the request was sent."""
    env.reset(seed=0)
    server.vanish_at = next(path for path in server._answers if path.endswith("/step"))
    assert env.step(step)[4]["fault"]["kind"] == "ConnectionLost"
    server.vanish_at = None


class Cutting(CountedServer):
    """A server that closes no environment, and gives each a new id if it is Maze's."""

    def _counted(self, request):
        answer = super()._counted(request)
        if request.path == "/maze/create":
            return {"id": next(self._ids)}
        return hang_up if request.path == self.vanish_at else answer


@both
def test_a_place_whose_connection_was_lost_in_a_step_is_not_used_at_once(started, kind):
    """The step may still be running there, and would meet the next episode."""
    stepped = {"observation": "Done.", "reward": 0.0, "done": False}
    server = started(Cutting({"/": "ok", "/create": 0, "/reset": "Do it.", "/step": stepped}))
    env = kind("TODOList", server=server.url)
    cut_off_in_a_step(server, env, TODO)
    with pytest.raises(errors.ServerFull, match="still taken by an environment"):
        env.reset(seed=0)
    assert server.asked["/reset"] == 1
    env.close()


@both
def test_an_environment_whose_connection_was_lost_in_a_step_is_replaced(started, kind):
    stepped = {"observation": "x", "reward": -1, "done": False}
    server = started(
        Cutting(
            {"/": "This is environment LMRL-Gym.", "/maze/reset": {"observation": "x"}, "/maze/step": stepped}
        )
    )
    env, other = (kind("Maze", server=server.url) for _ in range(2))
    cut_off_in_a_step(server, env, "Action: move up")
    env.reset(seed=0)
    other.reset(seed=0)
    used = [request.json["id"] for request in server.requests if request.path == "/maze/reset"]
    assert used == [0, 1, 2]
    env.close()
    other.close()


def test_after_a_good_reset_a_vector_forgets_that_an_earlier_one_failed(counted):
    server = counted()
    envs = gymnasium.make_vec("agentgym/TextCraft-v0", num_envs=2, server=server.url)
    server.broken.add("/create")
    with pytest.raises(errors.Fault):
        envs.reset(seed=0)
    server.broken.clear()
    envs.reset(seed=0, options={"reset_mask": np.array([True, False])})
    assert not envs.step([LOOK, None])[3].any()
    assert envs.step([LOOK, LOOK])[3].tolist() == [False, True]  # the second was not reset since
    envs.reset(seed=0)
    _, _, _, truncated, infos = envs.step([LOOK, LOOK])
    assert not truncated.any()
    assert "fault" not in infos
    envs.close()


class CannotClose(httpx.AsyncClient):
    """A user's client that fails when it is closed."""

    async def aclose(self):
        await super().aclose()
        raise OSError("on purpose")


def test_a_vector_whose_close_fails_leaves_no_thread(counted):
    server = counted()
    before = {each for each in threading.enumerate() if each.name == "agentgym-vector"}
    envs = gymnasium.make_vec("agentgym/TextCraft-v0", num_envs=2, server=server.url, http_client=CannotClose)
    envs.reset(seed=0)
    with pytest.raises(OSError, match="on purpose"):
        envs.close()
    assert {each for each in threading.enumerate() if each.name == "agentgym-vector"} <= before
    assert server.open == set()


@both
def test_an_episode_waits_for_a_place_no_longer_than_its_own_time(counted, kind):
    server = counted()
    first = AgentGymEnv("TextCraft", server=server.url, max_envs_per_server=1)
    first.reset(seed=0)
    limits = {"episode": 0.2, "create": 100_000}
    env = kind("TextCraft", server=server.url, max_envs_per_server=1, timeout=limits)
    refused = threading.Event()

    def wait():
        with contextlib.suppress(errors.ServerFull):
            env.reset(seed=0)
            return
        refused.set()

    threading.Thread(target=wait, daemon=True).start()
    assert refused.wait(60)
    first.close()
    assert server.open == set()


LATE = """
    import sys
    from agentgym_gym import AgentGymEnv, errors

    env = AgentGymEnv("TextCraft", server=sys.argv[1], timeout={"create": 0.2})
    try:
        env.reset(seed=0)
    except errors.ServerTimeout:
        print("late", flush=True)
"""


@pytest.mark.slow  # a separate program
def test_an_environment_created_while_the_program_ends_is_closed(counted):
    server = counted()
    server.held_up.add("/create")
    command = [sys.executable, "-c", textwrap.dedent(LATE), server.url]
    with programs.start(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as program:
        assert program.stdout.readline() == "late\n"
        with contextlib.suppress(subprocess.TimeoutExpired):
            program.wait(0.5)  # it is at its end now, and waits for the answer
        server.let_go.set()
        _, errors_written = program.communicate(timeout=60)
    assert (program.returncode, errors_written) == (0, "")
    assert (server.most, server.open) == (1, set())


@pytest.mark.slow
def test_while_a_local_server_starts_the_event_loop_continues():
    local_servers.stop_all()
    env = AsyncAgentGymEnv("Maze")

    async def count_turns(resetting):
        turns = 0
        while not resetting.done():
            await asyncio.sleep(0.01)
            turns += 1
        return turns

    async def main():
        resetting = asyncio.ensure_future(env.reset(seed=0))
        turns = await count_turns(resetting)
        await resetting
        await env.close()
        return turns

    try:
        # A server takes at least a quarter of a second to start: Python has to start, and to import FastAPI.
        assert asyncio.run(main()) >= 10
    finally:
        local_servers.stop_all()


class Interrupted(AsyncAgentGymEnv):
    """Ctrl-C comes when a step has started and nothing awaits it yet."""

    def begin_step(self, action):
        super().begin_step(action)
        raise KeyboardInterrupt


@pytest.mark.parametrize("reply", [LOOK, "no action at all"])
def test_a_step_that_is_interrupted_before_it_is_awaited_is_over(counted, reply):
    server = counted()
    env = Interrupted("TextCraft", server=server.url)
    loop = asyncio.new_event_loop()
    loop.run_until_complete(env.reset(seed=0))
    assert env.playing
    server.held_up.add("/step")
    with pytest.raises(KeyboardInterrupt):
        loop.run_until_complete(env.step(reply))
    assert not env.playing
    loop.run_until_complete(env.reset(seed=0))
    loop.run_until_complete(env.close())
    loop.close()
    assert server.open == set()
