"""What was interrupted is closed later, but only where it surely is still ours."""

from __future__ import annotations

import asyncio
import gc
import os
import socket
import sys

import pytest

import inside
from agentgym_gym import AgentGymEnv, AsyncAgentGymEnv, errors
from agentgym_gym._http import connection_ids
from agentgym_gym._leasing.late_replies import late_create
from agentgym_gym._leasing.lease import Holder
from agentgym_gym._leasing.recognition import Memory
from agentgym_gym.calls import Call, Reply
from fake_server import never
from restarting_server import OTHER, OWNER, RestartingServer

US = {"headers": {OWNER: "us"}}
NOBODY = errors.ServerUnreachable("nobody listens", refused=True)


class Deaf(RestartingServer):
    """It does not answer some paths, and does not do what they ask for or does it all the same."""

    def __init__(self):
        self.deaf_to: set[str] = set()
        self.does_it = False
        super().__init__()

    def _answered(self, request):
        if request.path not in self.deaf_to:
            return super()._answered(request)
        if self.does_it:
            super()._answered(request)
        return never


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
    env = AgentGymEnv("TextCraft", server=server.url, timeout={"close": 0.1}, **US)
    env.reset(options={"task_id": 3})
    server.deaf_to = {"/close"}
    env.close()
    server.deaf_to = set()
    if restarted:
        server.restart()
    if again == "close":
        env.close()
    elif again == "exit":
        inside.release_all()
    else:
        del env
        gc.collect()
    assert server.asked["/observation"] == restarted  # else a connection that lives proves enough
    assert server.thefts == []
    assert others(server) if restarted else server.envs == {}


@pytest.mark.parametrize("restarted", [False, True])
@pytest.mark.parametrize("path", ["/reset", "/step"])
@pytest.mark.parametrize("does_it", [False, True])
def test_what_was_cancelled_is_closed_when_its_event_loop_is_gone_unless_it_is_not_ours(
    server, path, restarted, does_it
):
    env = AsyncAgentGymEnv("TextCraft", server=server.url, **US)

    async def main():
        server.deaf_to, server.does_it = {path}, does_it
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(play(), 0.1)

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


def witnesses(server):
    """Return those of one server: an earlier test's may not have been collected yet."""
    return [
        each
        for each in connection_ids._up_to(server.url, sys.maxsize)
        if isinstance(each, connection_ids.Witness)
    ]


def test_no_descriptor_is_kept_longer_than_it_is_of_use(server):
    env = AgentGymEnv("TextCraft", server=server.url, timeout={"step": 0.1}, **US)
    env.reset(options={"task_id": 3})
    server.deaf_to = {"/step"}
    env.step("Action: inventory")
    (witness,) = witnesses(server)
    assert witness.lives
    del witness
    env.close()
    assert witnesses(server) == []


def test_a_copy_is_closed_with_what_holds_it():
    ours, theirs = socket.socketpair()
    witness = connection_ids.Witness(1, ours.fileno())
    number = witness.descriptor
    witness.itself = witness
    assert witness.lives
    del witness
    gc.collect()  # a socket that is not closed by then is warned of
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(number)
    for each in (ours, theirs):
        each.close()


def test_descriptors_are_kept_of_a_few_alone(server):
    env = AgentGymEnv("TextCraft", server=server.url)
    env.reset(seed=0)
    (connection,) = env._driver._connections.values()
    kept = [connection_ids.copy_of(server.url, connection.number, connection.descriptor) for _ in range(100)]
    assert len([each for each in kept if each is not None]) < 100
    env.close()


@pytest.mark.parametrize(("heard_on", "still_ours"), [(7, True), (3, False)])
def test_a_late_id_of_a_server_that_is_gone_takes_none_from_its_successor(server, heard_on, still_ours):
    pool = inside.pool_at("TextCraft", server.url)
    holder = Holder()
    lease = pool.add_new(0, None, holder, Memory(connection=heard_on))
    late = late_create(pool, 3, Holder())
    late(Reply(Call("create", "POST", "/create", server=server.url), 200, b'{"id": 0}', {}, connection=5))
    assert lease.current == still_ours


def test_a_refusal_of_before_takes_nothing_that_was_made_since(server):
    env = AgentGymEnv("TextCraft", server=server.url, **US)
    env.reset(options={"task_id": 3})
    list(inside.pool_at("TextCraft", server.url).note_fault(NOBODY))
    *_, info = env.step("Action: inventory")
    assert "fault" not in info
    env.close()
    assert [owner for owner, _ in server.envs.values() if owner == "us"] == []
