"""Whenever something is interrupted, what the server has made is closed in the end."""

from __future__ import annotations

import asyncio
import itertools
import random
import time

import gymnasium
import pytest

import inside
from agentgym_gym import AgentGymEnv, AsyncAgentGymEnv, errors
from clock import wait_until
from counted_server import CountedServer
from fake_server import never
from interrupts import interrupted, points_of, run_as_asyncio, spread


@pytest.fixture
def server(started):
    """One that takes its time for each answer, so that something is under way when an interrupt comes."""
    return started(Slow())


class Slow(CountedServer):
    """Answers after some milliseconds, and not at all to requests to close while it is `deaf`."""

    deaf = False

    def _counted(self, request):
        if self.deaf and request.path == "/close":
            return never
        time.sleep(0.003)
        answer = super()._counted(request)
        time.sleep(0.003)
        return answer


def at_exit():
    """What is done when a program ends."""
    inside.release_all()


def persisted(server):
    return [env_id for each in inside.records(server.url) for env_id in each.ids]


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.usefixtures("garbage_collected")
def test_a_task_cancelled_at_any_moment_leaves_nothing(server):
    moments = random.Random(0)  # noqa: S311 - no secret

    async def play(env):
        await env.reset(seed=0)
        await env.step("Action: inventory")
        await env.reset(seed=1)
        await env.close()

    async def interrupt(kept):
        env = AsyncAgentGymEnv("TextCraft", server=server.url)
        kept.append(env)
        task = asyncio.ensure_future(play(env))
        await asyncio.sleep(moments.uniform(0, 0.05))
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        if moments.random() < 0.3:  # goes on
            await env.reset(seed=2)
            assert "fault" not in (await env.step("Action: inventory"))[4]
        if moments.random() < 0.5:
            await env.close()

    async def main():
        kept = []
        await asyncio.gather(*(interrupt(kept) for _ in range(60)))
        return kept

    kept = asyncio.run(main())
    assert set(persisted(server)) >= server.open  # what is open can be found
    at_exit()
    assert len(kept) == 60
    assert server.open == set()
    assert persisted(server) == []


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.usefixtures("garbage_collected")
def test_a_create_that_is_cancelled_is_closed_when_its_id_is_known(counted):
    server = counted()
    server.held_up.add("/create")
    env = AsyncAgentGymEnv("TextCraft", server=server.url)

    async def main():
        task = asyncio.ensure_future(env.reset(seed=0))
        await asyncio.to_thread(server.arrived.wait, 30)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    asyncio.run(main())
    server.let_go.set()
    at_exit()
    assert (server.most, server.open) == (1, set())


@pytest.mark.parametrize("awaited", [False, True])
def test_a_create_that_is_too_late_is_closed_when_its_id_is_known(counted, awaited):
    server = counted()
    server.held_up.add("/create")
    env = (AsyncAgentGymEnv if awaited else AgentGymEnv)(
        "TextCraft", server=server.url, timeout={"create": 0.2}
    )
    with pytest.raises(errors.ServerTimeout):
        asyncio.run(env.reset(seed=0)) if awaited else env.reset(seed=0)
    server.let_go.set()
    deadline = time.monotonic() + 10
    while server.asked["/close"] < 1:  # without a use of the environment or the end of the program
        assert time.monotonic() < deadline
        time.sleep(0.01)
    at_exit()
    assert (server.most, server.open) == (1, set())


def test_a_create_that_is_too_late_is_used_again_where_nothing_can_be_closed(counted):
    server = counted({"/": "This is environment LMRL-Gym.", "/maze/create": {"id": 3}})
    server._answers |= {"/maze/reset": {"observation": "x"}}
    server.held_up.add("/maze/create")
    env = AgentGymEnv("Maze", server=server.url, timeout={"create": 0.2})
    with pytest.raises(errors.ServerTimeout):
        env.reset(seed=0)
    server.let_go.set()
    at_exit()
    inside.limit_times(env, create=60)
    env.reset(seed=0)
    assert server.asked["/maze/create"] == 1
    assert server.requests[-1].json["id"] == 3
    env.close()


# The garbage collector warns of connections that were being opened or closed.
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.usefixtures("garbage_collected")
@pytest.mark.parametrize(("what", "awaited"), [("reset", False), ("close", False), ("close", True)])
def test_wherever_ctrl_c_comes_nothing_is_left(counted, what, awaited):
    server, loop = counted(), asyncio.new_event_loop()
    kept = []

    def operation():
        env = kept[-1]
        if awaited:
            run_as_asyncio(loop, env.reset(seed=1) if what == "reset" else env.close())
        elif what == "reset":
            env.reset(seed=1)
        else:
            env.close()

    def make():
        kept.append((AsyncAgentGymEnv if awaited else AgentGymEnv)("TextCraft", server=server.url))
        if what == "close":
            loop.run_until_complete(kept[-1].reset(seed=0)) if awaited else kept[-1].reset(seed=0)

    make()
    for point in spread(points_of(operation), 60):
        make()
        interrupted(operation, point)
    for env in kept[::2]:  # half of them by a second close, the others at exit
        loop.run_until_complete(env.close()) if awaited else env.close()
    at_exit()
    loop.close()
    assert server.open == set()
    assert persisted(server) == []


def test_the_next_close_of_a_vector_closes_the_rest_of_an_interrupted_one(server):
    envs = gymnasium.make_vec("agentgym/TextCraft-v0", num_envs=40, server=server.url).unwrapped
    envs.reset(seed=0)

    async def interrupt():
        closing = asyncio.ensure_future(envs._close_all())
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        closing.cancel()
        await asyncio.gather(closing, return_exceptions=True)

    server.deaf = True
    envs._loop.run(interrupt())
    server.deaf = False
    assert len(server.open) == 40
    envs.close()
    assert server.open == set()
    assert persisted(server) == []


def test_failed_closes_are_retried_at_exit(counted):
    server = counted()
    env = AgentGymEnv("TextCraft", server=server.url)
    env.reset(seed=0)
    server.held_up.add("/close")
    inside.limit_times(env, close=0.1)
    env.close()
    assert env.stats.faults == {"ServerTimeout": 1}
    server.held_up.clear()
    server.let_go.set()
    wait_until(lambda: server.open == set())
    server.open.add(0)  # which the server did not close after all
    at_exit()
    assert (server.asked["/close"], server.open, persisted(server)) == (2, set(), [])


@pytest.mark.slow  # seconds of waiting
def test_a_server_that_takes_long_to_close_is_not_at_fault(counted):
    """As WebArena's, which takes 5 seconds: one by one at exit they would take too long."""
    server = counted(
        {"/": "ok", "/create": 0, "/close": {"closed": "closed"}, "/reset": {"observation": "x"}}
    )
    ids = itertools.count()
    began, ended = [], []

    def answer(request):
        if request.path == "/create":
            return {"env_idx": next(ids)}
        if request.path == "/close":
            began.append(time.monotonic())
            time.sleep(2.3)  # more than a usual close has at exit
            ended.append(request.json["env_idx"])
            return {"closed": "closed"}
        if request.path == "/reset":
            return {"observation": "[1] RootWebArea", "sites": [], "object": "Find it."}
        if request.path == "/observation":
            return "\nOBJECTIVE: Find it.\n"
        return b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok" if request.path == "/" else (404, {})

    server.answer = answer
    envs = [AgentGymEnv("WebArena", server=server.url) for _ in range(5)]
    for env in envs:
        env.reset(options={"task_id": 0})
    at_exit()
    assert sorted(ended) == list(range(5))
    assert max(began) - min(began) < 2
    assert all(not env.stats.faults for env in envs)
    assert persisted(server) == []
