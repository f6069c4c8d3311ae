"""What was interrupted is closed later, but only where it surely is still ours."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import gc
import socket
from pathlib import Path
from urllib.parse import urlsplit

import pytest

import inside
from agentgym_gym import AgentGymEnv, AsyncAgentGymEnv, errors
from awaited_env import Awaited
from clock import wait_until
from fake_server import hang_up, never
from restarting_server import OTHER, OWNER, RestartingServer

US = {"headers": {OWNER: "us"}}


class Deaf(RestartingServer):
    """It does not answer some paths, and does not do what they ask for or does it all the same.

    Attributes:
        in_place: What it does in place of an answer.
    """

    def __init__(self):
        self.deaf_to: set[str] = set()
        self.does_it = False
        self.in_place = never
        super().__init__()

    def _answered(self, request):
        if request.path not in self.deaf_to:
            return super()._answered(request)
        if self.does_it:
            super()._answered(request)
        return self.in_place


@pytest.fixture
def server(started):
    return started(Deaf())


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch):
    inside.retry_at_once(monkeypatch)


def others(server):
    return server.others == [f"{OTHER} plays"] * server.taken


@pytest.mark.parametrize("restarted", [False, True])
@pytest.mark.parametrize("again", ["close", "exit", "drop"])
def test_a_close_that_is_tried_again_reaches_no_other(server, again, restarted):
    env = AgentGymEnv("TextCraft", server=server.url, **US)
    env.reset(options={"task_id": 3})
    server.deaf_to = {"/close"}
    inside.limit_times(env, close=0.1)
    env.close()
    server.deaf_to = set()
    inside.limit_times(env, close=60)
    if restarted:
        server.restart()
    if again == "close":
        env.close()
    elif again == "exit":
        inside.release_all()
    else:
        del env
        gc.collect()
    assert server.asked["/observation"] == 1
    assert server.thefts == []
    assert others(server) if restarted else server.envs == {}


@pytest.mark.parametrize("restarted", [False, True])
@pytest.mark.parametrize("path", ["/reset", "/step"])
@pytest.mark.parametrize("does_it", [False, True])
def test_a_cancelled_environment_is_closed_after_its_event_loop_unless_it_is_not_ours(
    server, path, restarted, does_it
):
    env = AsyncAgentGymEnv("TextCraft", server=server.url, **US)

    async def main():
        server.deaf_to, server.does_it = {path}, does_it
        playing = asyncio.ensure_future(play())
        await asyncio.to_thread(wait_until, lambda: server.asked[path])
        playing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await playing

    async def play():
        await env.reset(options={"task_id": 3})
        await env.step("Action: inventory")

    asyncio.run(main())
    server.deaf_to = set()
    if restarted:
        server.restart()
    inside.release_all()
    assert server.thefts == []
    assert others(server) if restarted else server.envs == {}


@pytest.mark.parametrize("path", ["/reset", "/step"])
@pytest.mark.parametrize("kind", [AgentGymEnv, AsyncAgentGymEnv])
def test_an_environment_of_a_timed_out_request_is_closed_while_its_connection_is_open(server, path, kind):
    """Though the request has changed it, and it can no longer be recognised."""
    env = kind("TextCraft", server=server.url, timeout={"step": 0.2, "reset": 0.2}, **US)

    async def main():
        async def done(result):
            return await result if kind is AsyncAgentGymEnv else result

        with contextlib.suppress(errors.ServerTimeout):
            await done(env.reset(options={"task_id": 3}))
            await done(env.step("Action: inventory"))
        server.deaf_to = set()
        await done(env.close())

    server.deaf_to, server.does_it = {path}, True
    asyncio.run(main())
    assert server.asked["/observation"] == 0
    assert server.envs == {}


@pytest.mark.parametrize("restarted", [False, True])
@pytest.mark.parametrize("older", [False, True])
def test_an_environment_that_a_lost_request_has_changed_is_closed_if_an_older_connection_is_open(
    server, older, restarted
):
    """Another environment's, which shows that the server was not restarted. Otherwise it is listed."""
    first, second = (AgentGymEnv("TextCraft", server=server.url, **US) for _ in range(2))
    for each in (first, second):
        each.reset(options={"task_id": 3})
    env, other = (second, first) if older else (first, second)
    server.deaf_to, server.does_it, server.in_place = {"/step"}, True, hang_up
    assert env.step("Action: inventory")[4]["fault"]["kind"] == "ConnectionLost"
    server.deaf_to = set()
    if restarted:
        server.restart()
    env.close()
    ours = [env_id for env_id, (owner, _) in server.envs.items() if owner == "us"]
    listed = [env_id for record in inside.records(server.url) for env_id in record.ids]
    assert len(ours) == (0 if restarted else 1 if older else 2)
    assert set(ours) <= set(listed)
    assert env.stats.looks == (restarted or not older)
    other.close()
    assert server.thefts == []
    assert others(server) or not restarted


def descriptors(server):
    """Return how many of this process's descriptors are connected to a server."""
    port = f":{urlsplit(server.url).port:04X}"
    rows = [line.split() for line in Path("/proc/self/net/tcp").read_text().splitlines()]
    sockets = {f"socket:[{row[9]}]" for row in rows if row[2].endswith(port)}  # its remote address
    number = 0
    for descriptor in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(OSError):  # it was closed meanwhile
            number += str(descriptor.readlink()) in sockets
    return number


linux = pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="descriptors are listed in /proc")


def cut_off_in_a_step(server):
    env = AgentGymEnv("TextCraft", server=server.url, timeout={"step": 0.1}, **US)
    env.reset(options={"task_id": 3})
    assert descriptors(server) == 1
    server.deaf_to = {"/step"}
    assert env.step("Action: inventory")[4]["fault"]["kind"] == "ServerTimeout"
    server.deaf_to = set()
    return env


@linux
def test_no_descriptor_is_kept_longer_than_it_is_of_use(server):
    env = cut_off_in_a_step(server)
    assert descriptors(server) == 1  # while it is open, the environment is still ours
    env.close()
    gc.collect()  # a socket that is not closed by then is warned of
    wait_until(lambda: descriptors(server) == 0)


@linux
@pytest.mark.parametrize("cut_off", [False, True])
def test_an_environment_has_a_descriptor_after_its_event_loop_until_it_is_closed(server, cut_off):
    env = AsyncAgentGymEnv("TextCraft", server=server.url, timeout={"step": 0.1}, **US)

    async def main():
        await env.reset(options={"task_id": 3})
        server.deaf_to = {"/step"} if cut_off else set()
        await env.step("Action: inventory")

    asyncio.run(main())
    server.deaf_to = set()
    assert descriptors(server) == 1
    asyncio.run(env.close())
    assert server.envs == {}
    wait_until(lambda: descriptors(server) == 0)


@linux
@pytest.mark.parametrize("kind", [AgentGymEnv, Awaited])
def test_a_server_that_answers_nothing_more_costs_two_descriptors(server, kind, monkeypatch):
    """The connection of the last reply, and that of the last request."""
    inside.never_open_circuits(monkeypatch)
    env = kind("TextCraft", server=server.url, timeout={"reset": 0.1, "step": 0.1, "close": 0.1}, **US)
    env.reset(options={"task_id": 3})
    server.deaf_to = {"/reset", "/step", "/close"}
    assert env.step("Action: inventory")[4]["fault"]["kind"] == "ServerTimeout"
    for _ in range(4):
        with pytest.raises(errors.ServerTimeout):
            env.reset(options={"task_id": 3})
        gc.collect()
        assert 1 <= descriptors(server) <= 2
    env.close()


def test_a_refusal_takes_nothing_while_a_connection_shows_that_the_server_is_there(server, monkeypatch):
    env, other = (AgentGymEnv("TextCraft", server=server.url, **US) for _ in range(2))
    env.reset(options={"task_id": 3})
    with monkeypatch.context() as patch:
        patch.setattr(socket.socket, "connect_ex", lambda *_args: errno.ECONNREFUSED)
        with pytest.raises(errors.ServerUnreachable):
            other.reset(seed=0)
    *_, info = env.step("Action: inventory")
    assert "fault" not in info
    env.close()
    assert [owner for owner, _ in server.envs.values() if owner == "us"] == []
