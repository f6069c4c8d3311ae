"""Connections as networks have them: replies in pieces, several addresses, no descriptors, loops that end."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import json
import logging
import selectors
import socket
import subprocess
import sys
import textwrap
import time
import weakref

import gymnasium
import pytest

import inside
import programs
from agentgym_gym import AgentGymEnv, AsyncAgentGymEnv, errors
from awaited_env import Awaited
from counted_server import CountedServer
from fake_server import as_json, http, then_hang_up

LOOK = "Action: inventory"


both = pytest.mark.parametrize("kind", [AgentGymEnv, Awaited])


class InPieces(CountedServer):
    """Sends the body of a reply in a number of pieces, a moment apart."""

    pieces = 1

    def _counted(self, request):
        whole = as_json(super()._counted(request))
        head, _, body = whole.partition(b"\r\n\r\n")
        size = -(-len(body) // self.pieces)
        parts = [body[start : start + size] for start in range(0, len(body), size)]
        return lambda connection: connection.send(head + b"\r\n\r\n", *parts, pause=0.02)


@both
@pytest.mark.parametrize("pieces", [1, 2, 3, 4])
def test_a_reply_is_whole_in_however_many_pieces_it_arrives(started, kind, pieces):
    server = started(InPieces())
    env = kind("TextCraft", server=server.url)
    env.reset(seed=0)
    server.pieces = pieces
    assert env.step(LOOK)[0] == "You did inventory."
    env.close()


@both
@pytest.mark.parametrize("dead_first", [True, False])
def test_a_server_is_reached_by_any_address_of_its_name(counted, monkeypatch, kind, dead_first):
    server = counted()
    port = int(server.url.rpartition(":")[2])
    look_up = socket.getaddrinfo

    def two_families(host, *args, **options):
        if host != "two.test":
            return look_up(host, *args, **options)
        dead = (socket.AF_INET6, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", ("::1", port, 0, 0))
        alive = (socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", ("127.0.0.1", port))
        return [dead, alive] if dead_first else [alive, dead]

    monkeypatch.setattr(socket, "getaddrinfo", two_families)
    env = kind("TextCraft", server=f"http://two.test:{port}")
    env.reset(seed=0)
    assert env.step(LOOK)[0] == "You did inventory."
    env.close()
    assert server.open == set()


def test_of_two_connections_at_once_one_is_kept(counted, monkeypatch):
    server = counted()
    port = int(server.url.rpartition(":")[2])
    alive = (socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", ("127.0.0.1", port))
    waits = []

    class Late(selectors.DefaultSelector):
        """The first attempt takes so long that the second starts, and both end together."""

        def select(self, timeout=None):
            waits.append(timeout)
            return [] if len(waits) == 1 else super().select(timeout)

    monkeypatch.setattr(socket, "getaddrinfo", lambda *_args, **_options: [alive, alive])
    monkeypatch.setattr(selectors, "DefaultSelector", Late)
    env = AgentGymEnv("TextCraft", server=f"http://two.test:{port}")
    env.reset(seed=0)
    assert len(waits) == 2
    env.close()
    assert server.open == set()


NO_DESCRIPTORS = """
    import asyncio, os, resource, sys, threading
    from agentgym_gym import AgentGymEnv, AsyncAgentGymEnv, errors

    loop = asyncio.new_event_loop()
    awaited = sys.argv[2] == "awaited"
    run = loop.run_until_complete if awaited else lambda done: done
    kind = AsyncAgentGymEnv if awaited else AgentGymEnv
    env = kind("TextCraft", server=sys.argv[1], timeout={"create": 2})
    resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))

    def take_all():
        print("asks", flush=True)
        sys.stdin.readline()  # the request has arrived
        try:
            while True:
                os.dup(0)
        except OSError:
            print("none is left", flush=True)

    threading.Thread(target=take_all, daemon=True).start()
    try:
        run(env.reset(seed=0))
    except errors.ServerTimeout:
        print("timeout", flush=True)
    os._exit(0)
"""


@pytest.mark.slow  # a separate program
@pytest.mark.parametrize("kind", ["sync", "awaited"])
def test_without_a_descriptor_a_time_limit_is_still_a_time_limit(counted, kind):
    server = counted()
    server.held_up.add("/create")
    command = [sys.executable, "-c", textwrap.dedent(NO_DESCRIPTORS), server.url, kind]
    with programs.start(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as program:
        assert server.arrived.wait(60)
        output, _ = program.communicate("arrived\n", timeout=60)
    assert output == "asks\nnone is left\ntimeout\n"


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.usefixtures("garbage_collected")
def test_an_environment_being_created_when_an_event_loop_ends_is_closed(counted):
    """As in a program that does not cancel its tasks: the loop's own end is all there is."""
    server = counted()
    server.held_up.add("/create")
    env = AsyncAgentGymEnv("TextCraft", server=server.url)
    loop = asyncio.new_event_loop()
    resetting = loop.create_task(env.reset(seed=0))
    loop.run_until_complete(asyncio.to_thread(server.arrived.wait, 30))
    loop.run_until_complete(loop.shutdown_default_executor())
    loop.run_until_complete(loop.shutdown_asyncgens())
    loop.close()
    server.let_go.set()
    inside.release_all()
    assert (server.most, server.open) == (1, set())
    assert not resetting.done()


def test_episodes_whose_time_ends_in_a_step_open_no_circuit(counted, monkeypatch):
    server = counted()
    envs = gymnasium.make_vec(
        "agentgym/TextCraft-v0", num_envs=5, server=server.url, timeout={"episode": 600}
    )
    envs.reset(seed=0)
    server.held_up.add("/step")
    now = time.monotonic
    with monkeypatch.context() as later:
        later.setattr(time, "monotonic", lambda: now() + 599.5)
        *_, infos = envs.step([LOOK] * 5)
    assert list(infos["fault"]["kind"]) == ["ServerTimeout"] * 5
    server.held_up.clear()
    server.let_go.set()
    with contextlib.closing(AgentGymEnv("TextCraft", server=server.url)) as env:
        env.reset(seed=0)
        assert env.step(LOOK)[0] == "You did inventory."
    envs.close()


def test_ids_that_one_server_did_not_close_are_named_though_another_closed_all(counted):
    good, bad = counted(), counted()
    envs = [AgentGymEnv("TextCraft", server=server.url) for server in (good, bad)]
    for env in envs:
        env.reset(seed=0)
    bad.broken.add("/close")
    inside.release_all()
    inside.forget_held()  # the end of the program
    assert (good.open, bad.open) == (set(), {0})
    assert inside.records(good.url) == []
    assert [list(record.ids) for record in inside.records(bad.url)] == [[0]]


@both
def test_a_close_that_the_server_refuses_is_not_tried_again_at_exit(counted, kind):
    """It has answered: only a request without an answer may still have to be sent."""
    server = counted()
    env = kind("TextCraft", server=server.url)
    env.reset(seed=0)
    server.broken.add("/close")
    env.close()
    tried = server.asked["/close"]
    assert tried >= 1
    inside.release_all()
    assert server.asked["/close"] == tried


class Restless(CountedServer):
    """Closes the connection after each answer to a reset or a check, without a word."""

    def _counted(self, request):
        answer = super()._counted(request)
        return then_hang_up(as_json(answer)) if request.path in {"/reset", "/observation"} else answer


@both
def test_a_server_that_drops_each_connection_ends_the_episode_without_a_crash(started, kind):
    server = started(Restless())
    env = kind("TextCraft", server=server.url)
    for _ in range(20):
        env.reset(seed=0)
        _, _, _, truncated, info = env.step(LOOK)
        assert truncated
        # The end of the connection is seen before the step is sent, or only then.
        assert info["fault"]["kind"] in {"LeaseLost", "ConnectionLost"}
    assert server.asked["/step"] == 0
    env.close()


class Closing(CountedServer):
    """Announces with each reply that it closes the connection, as servers of HTTP/1.0 do, and closes it."""

    def _counted(self, request):
        body = json.dumps(super()._counted(request)).encode()
        return then_hang_up(http(body, "200 OK", "Connection: close"))


@both
def test_a_server_that_announces_each_end_of_a_connection_is_played_on(started, kind):
    server = started(Closing())
    env = kind("TextCraft", server=server.url)
    for _ in range(2):
        env.reset(seed=0)
        assert env.step(LOOK)[0] == "You did inventory."
    assert server.asked["/create"] == 1
    env.close()
    assert server.open == set()


def test_a_connection_that_is_lost_before_it_is_used_is_a_fault(monkeypatch):
    """A server that dies takes connections until the moment it is gone."""
    inside.retry_at_once(monkeypatch)

    async def play():
        server = await asyncio.start_server(lambda _, writer: writer.transport.abort(), "127.0.0.1")
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        env = AsyncAgentGymEnv("TextCraft", server=url)
        with pytest.raises(errors.ConnectionLost):
            await env.reset(seed=0)
        await env.close()
        server.close()
        await server.wait_closed()
        return env.stats

    stats = asyncio.run(play())
    assert (stats.requests, stats.retries, stats.faults) == (3, 2, {"ConnectionLost": 1})


def test_no_event_loop_is_kept(textcraft_url):
    loops = weakref.WeakSet()

    async def play():
        loops.add(asyncio.get_running_loop())
        async with AsyncAgentGymEnv("TextCraft", server=textcraft_url) as env:
            await env.reset(seed=0)

    for _ in range(5):
        asyncio.run(play())
    gc.collect()
    assert len(loops) <= 1  # asyncio may keep the last


@pytest.mark.slow
@pytest.mark.parametrize("passes", range(12))
def test_a_connection_that_is_given_up_while_it_is_made_leaves_no_socket_open(textcraft_url, passes):
    async def give_up():
        envs = [AsyncAgentGymEnv("TextCraft", server=textcraft_url) for _ in range(20)]
        playing = [asyncio.ensure_future(env.reset(seed=0)) for env in envs]
        for _ in range(passes):
            await asyncio.sleep(0)
        for each in playing:
            each.cancel()
        await asyncio.wait(playing)
        for env in envs:
            await env.close()

    asyncio.run(give_up())
    gc.collect()  # what is not closed by then is warned of, and a warning is an error


class Unavailable(CountedServer):
    """Answers each reset that it is too busy."""

    def _counted(self, request):
        answer = super()._counted(request)
        return http(b"", "503 Service Unavailable") if request.path == "/reset" else answer


@both
def test_the_wait_before_a_retry_doubles(started, caplog, kind):
    caplog.set_level(logging.INFO, "agentgym_gym")
    env = kind("TextCraft", server=started(Unavailable()).url)
    with pytest.raises(errors.ServerError, match="503"):
        env.reset(seed=0)
    waits = [record.agentgym["wait"] for record in caplog.records if record.agentgym["event"] == "retry"]
    assert len(waits) == 2
    assert 0.05 <= waits[0] <= 0.15
    assert 0.1 <= waits[1] <= 0.3
    env.close()


@pytest.mark.parametrize("fault", ["ServerError", "ConnectionLost", "ServerTimeout"])
def test_an_environment_that_is_dropped_after_a_fault_is_collected(counted, fault):
    server = counted()
    env = AgentGymEnv(
        "TextCraft", server=server.url, timeout={"step": 0.3 if fault == "ServerTimeout" else 60}
    )
    env.reset(seed=0)
    server.broken = {"/step"} if fault == "ServerError" else set()
    server.vanish_at = "/step" if fault == "ConnectionLost" else None
    server.held_up = {"/step"} if fault == "ServerTimeout" else set()
    assert env.step(LOOK)[4]["fault"]["kind"] == fault
    dropped = weakref.ref(env)
    del env
    gc.collect()
    assert dropped() is None
    if fault == "ServerError":  # after the others, the step may still be executed
        inside.wait_for_background()
        assert server.open == set()
