"""A server of one place, and a step there that is not waited for any more."""

from __future__ import annotations

import asyncio
import contextlib
import time

import pytest

import inside
from agentgym_gym import AgentGymEnv, AsyncAgentGymEnv, errors
from clock import wait_until
from counted_server import CountedServer


class Todo(CountedServer):
    """The part of AgentGym's TODOList server that is used here."""

    def __init__(self):
        super().__init__(
            {
                "/": "ok",
                "/create": 0,
                "/reset": "Do it.",
                "/step": {"observation": "Done.", "reward": 0.0, "done": False},
            }
        )


STEP = "Action: get_projects with Action Input: {}"


def until_reset(env):
    """Reset again and again, as one does who waits for a place."""
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        with contextlib.suppress(errors.ServerFull):
            asyncio.run(env.reset(seed=0)) if isinstance(env, AsyncAgentGymEnv) else env.reset(seed=0)
            return
        time.sleep(0.01)
    raise AssertionError("the place is never free")


@pytest.mark.parametrize("another", [False, True])
def test_a_place_is_free_when_the_server_has_answered(started, another):
    server = started(Todo())
    env = AgentGymEnv("TODOList", server=server.url)
    env.reset(seed=0)
    server.held_up.add("/step")
    inside.limit_times(env, step=0.1)
    assert env.step(STEP)[4]["fault"]["kind"] == "ServerTimeout"
    with pytest.raises(errors.ServerFull, match=r"1 of these.*when the server answers"):
        env.reset(seed=0)
    server.let_go.set()
    server.held_up.clear()
    inside.limit_times(env, step=60)
    if another:
        env = AgentGymEnv("TODOList", server=server.url)
    until_reset(env)
    assert "fault" not in env.step(STEP)[4]
    env.close()
    assert server.asked["/create"] == 1  # the environment is used again


def test_a_place_is_free_at_once_where_the_answer_came_before_the_next_reset(started):
    server = started(Todo())
    env = AgentGymEnv("TODOList", server=server.url, timeout={"step": 0.1})
    env.reset(seed=0)
    server.held_up.add("/step")
    env.step(STEP)
    server.let_go.set()
    lease = env._episode.lease
    wait_until(lambda: lease.answered)
    env.reset(seed=0)
    env.close()


def test_the_same_after_a_step_that_was_cancelled(started):
    server = started(Todo())
    env = AsyncAgentGymEnv("TODOList", server=server.url)

    async def main():
        await env.reset(seed=0)
        server.held_up.add("/step")
        stepping = asyncio.ensure_future(env.step(STEP))
        assert await asyncio.to_thread(server.arrived.wait, 30)
        stepping.cancel()
        with pytest.raises(asyncio.CancelledError):
            await stepping
        with pytest.raises(errors.ServerFull, match="is still taken"):
            await env.reset(seed=0)

    asyncio.run(main())
    server.let_go.set()
    server.held_up.clear()
    until_reset(env)
    asyncio.run(env.close())


def test_a_reply_of_a_gateway_does_not_show_the_server_s_state(started):
    server = started(Todo())
    env = AgentGymEnv("TODOList", server=server.url, timeout={"step": 0.1})
    env.reset(seed=0)
    server._answers["/step"] = (504, "Gateway Timeout")
    server.held_up.add("/step")
    env.step(STEP)
    server.let_go.set()
    inside.wait_for_background()
    with pytest.raises(errors.ServerFull, match="1 of these places"):
        env.reset(seed=0)


def test_a_step_that_was_never_sent_takes_no_place(started, monkeypatch):
    server = started(Todo())
    env = AgentGymEnv("TODOList", server=server.url, timeout={"episode": 600})
    env.reset(seed=0)
    now = time.monotonic
    with monkeypatch.context() as later:
        later.setattr(time, "monotonic", lambda: now() + 601)
        assert env.step(STEP)[4]["fault"]["kind"] == "ServerTimeout"
    env.reset(seed=0)
    env.close()
