"""Several servers for one environment, and a bound on what is held on each: over real sockets."""

from __future__ import annotations

import asyncio
import threading

import gymnasium
import pytest

import inside
from agentgym_gym import AgentGymEnv, AsyncAgentGymEnv, errors
from clock import wait_until
from fake_server import FakeServer
from game_server import GameServer

SHOP = {
    "/": "ok",
    "/reset": ["x", None],
    "/observation": "WebShop [SEP] Search",
    "/step": {"state": "WebShop [SEP] Search", "reward": 0, "done": False},
}


def textcraft(*servers, kind=AgentGymEnv, **options):
    return kind("TextCraft", server=[server.url for server in servers], **options)


def where(servers, env):
    """Reset an environment, and return the number of the server that it was made on."""
    before = [server.asked["/create"] for server in servers]
    env.reset(seed=0)
    made = [server.asked["/create"] - number for server, number in zip(servers, before, strict=True)]
    assert sum(made) == 1
    return made.index(1)


def waiting(caplog):
    """Return how many resets wait for a place."""
    return [record.agentgym["event"] for record in caplog.records].count("waiting")


@pytest.fixture
def caplog(caplog):
    caplog.set_level("INFO", "agentgym_gym")
    return caplog


# --------------------------------------------------------------------------------------------- which server


def test_the_least_loaded_server_is_used(counted):
    servers = [counted(), counted()]
    envs = [textcraft(*servers) for _ in range(4)]
    assert sorted(where(servers, env) for env in envs) == [0, 0, 1, 1]
    for env in envs:
        env.close()
    assert [server.open for server in servers] == [set(), set()]


def test_simultaneous_resets_spread_too(counted):
    servers = [counted(), counted(), counted()]
    envs = gymnasium.make_vec("agentgym/TextCraft-v0", num_envs=9, server=[each.url for each in servers])
    envs.reset(seed=0)
    assert [len(server.open) for server in servers] == [3, 3, 3]
    envs.close()
    assert [server.open for server in servers] == [set(), set(), set()]


def test_of_equally_loaded_servers_the_quicker_one_is_used(counted):
    """By the steps that this process has seen; with an equal load, and only then."""
    servers = [counted(), counted(), counted()]
    envs = [textcraft(*servers) for _ in range(3)]
    playing = {where(servers, env): env for env in envs}
    steps = []
    for number, seconds in enumerate((0.6, 0.0, 0.3)):
        servers[number].held_up.add("/step")
        threading.Timer(seconds, servers[number].let_go.set).start()
        steps.append(threading.Thread(target=playing[number].step, args=["Action: inventory"]))
        steps[-1].start()
    for step in steps:
        step.join()
    for env in envs:
        env.close()
    later = [textcraft(*servers) for _ in range(4)]
    assert [where(servers, env) for env in later] == [1, 2, 0, 1]
    for env in later:
        env.close()


@pytest.mark.parametrize("path", ["/create", "/reset"])
def test_a_server_that_fails_is_deprioritized_and_tried_again_later(counted, path):
    """Holding nothing, it would be the least loaded one, and everybody's first choice."""
    sick, well = counted(), counted()
    sick.broken.add(path)
    first = textcraft(sick, well)
    if path == "/reset":  # it is known too late for this one
        with pytest.raises(errors.ServerError):
            first.reset(seed=0)
    first.reset(seed=0)
    others = [textcraft(sick, well) for _ in range(3)]
    assert {where([sick, well], env) for env in others} == {1}
    assert (sick.asked["/create"], well.asked["/create"]) == (1, 4)
    sick.broken.clear()
    for server in (sick, well):
        inside.advance_clock("TextCraft", server.url, 10)
    late = textcraft(sick, well)
    assert where([sick, well], late) == 0
    for env in [first, late, *others]:
        env.close()


def test_where_all_fail_the_fault_of_the_last_is_raised(counted):
    servers = [counted(), counted()]
    for server in servers:
        server.broken.add("/create")
    env = textcraft(*servers)
    with pytest.raises(errors.ServerError, match="HTTP 500"):
        env.reset(seed=0)
    assert [server.asked["/create"] for server in servers] == [1, 1]
    for server in servers:
        server.broken.clear()
    env.reset(seed=0)  # deprioritized, and all there is
    env.close()


def test_ids_are_used_again_on_a_server_that_closes_nothing(started):
    server = started(GameServer(closes=False))
    for task in range(4):
        with AgentGymEnv("Maze", server=server.url) as env:
            env.reset(options={"task_id": task})
    assert [request.path for request in server.requests].count("/maze/create") == 1
    resets = [request.json["id"] for request in server.requests if request.path == "/maze/reset"]
    assert resets == [0] * 4


def test_an_id_in_use_that_is_given_out_again_is_refused_with_advice(counted):
    server = counted(SHOP | {"/create": 5})
    first, second = (AgentGymEnv("WebShop", server=server.url) for _ in range(2))
    first.reset(seed=0)
    with pytest.raises(errors.ServerFull, match=r"id 5, which is in use.*more servers"):
        second.reset(seed=0)
    assert "fault" not in first.step("search[shoes]")[4]  # and is not disturbed
    second.close()
    first.close()


def test_an_id_that_agentgyms_own_server_gave_out_twice_is_not_taken_twice(recordings, started):
    """A server of three was asked for eight, and gave out live ids again."""
    ids = [row["response_json"] for row in recordings("webshop_cap3.jsonl") if row["path"] == "/create"]
    assert len(set(ids)) == 3 < len(ids)
    created = iter(ids)
    listed, reset = [], []

    def answer(request):
        if request.path == "/create":
            listed.append(next(created))
            return listed[-1]
        if request.path == "/list_envs":
            return sorted({*listed})
        if request.path == "/reset":
            reset.append(request.json["env_idx"])
        return SHOP.get(request.path, (404, {"detail": "Not Found"}))

    server = started(FakeServer(answer))
    envs = [AgentGymEnv("WebShop", server=server.url) for _ in range(4)]
    for env in envs[:3]:
        env.reset(seed=0)
    with pytest.raises(errors.ServerFull):
        envs[3].reset(seed=0)
    envs[0].close()
    envs[3].reset(seed=0)
    assert reset == [*ids[:3], ids[0]]
    assert len(listed) == 4
    for env in envs:
        env.close()


# ------------------------------------------------------------------------------------------------- the bound


def test_environments_beyond_the_limit_wait(counted):
    servers = [counted(), counted()]

    async def play():
        env = textcraft(*servers, kind=AsyncAgentGymEnv, max_envs_per_server=2)
        await env.reset(seed=0)
        turn = await env.step("Action: inventory")
        await env.close()
        return "fault" in turn[4]

    async def all_of_them():
        return await asyncio.gather(*(play() for _ in range(24)))

    assert asyncio.run(all_of_them()) == [False] * 24
    assert [server.most for server in servers] == [2, 2]
    assert sum(server.asked["/create"] for server in servers) == 24
    assert [server.open for server in servers] == [set(), set()]


def test_the_lease_of_an_ended_episode_passes_to_a_waiter(counted):
    """As where environments are kept for later episodes: nobody waits for one that nobody plays in."""
    servers = [counted(), counted()]

    async def play(kept):
        kept.append(textcraft(*servers, kind=AsyncAgentGymEnv, max_envs_per_server=2, max_turns=2))
        env = kept[-1]
        for _ in range(2):
            await env.reset(seed=0)
            turns = [await env.step("Action: inventory") for _ in range(2)]
            assert [turn[3] for turn in turns] == [False, True]
            assert "fault" not in turns[1][4]

    async def all_of_them():
        kept = []
        await asyncio.gather(*(play(kept) for _ in range(12)))
        for env in kept:
            await env.close()

    asyncio.run(all_of_them())
    assert [server.most for server in servers] == [2, 2]
    assert [server.asked["/create"] for server in servers] == [2, 2]
    assert [server.open for server in servers] == [set(), set()]


def test_the_lease_of_a_running_episode_is_kept(counted):
    server = counted()
    limits = {"create": 0.2}
    playing, over = (
        textcraft(server, max_envs_per_server=2, max_turns=turns, timeout=limits) for turns in (5, 1)
    )
    for env in (playing, over):
        env.reset(seed=0)
        env.step("Action: inventory")
    late = textcraft(server, max_envs_per_server=2, timeout=limits)
    late.reset(seed=0)
    assert "fault" not in playing.step("Action: inventory")[4]
    with pytest.raises(errors.ServerFull):
        over.reset(seed=0)
    assert "fault" not in late.step("Action: inventory")[4]
    playing.close()
    over.reset(seed=0)
    over.close()
    late.close()
    assert (server.most, server.asked["/create"], server.open) == (2, 3, set())


def test_threads_wait_for_threads_and_event_loops_for_both(counted, caplog):
    server = counted()
    first = textcraft(server, max_envs_per_server=1)
    first.reset(seed=0)
    played = []

    def in_a_thread():
        env = textcraft(server, max_envs_per_server=1)
        env.reset(seed=0)
        played.append("thread")
        env.close()

    async def in_a_loop():
        env = textcraft(server, kind=AsyncAgentGymEnv, max_envs_per_server=1)
        await env.reset(seed=0)
        played.append("loop")
        await env.close()

    waiters = [
        threading.Thread(target=in_a_thread),
        threading.Thread(target=lambda: asyncio.run(in_a_loop())),
    ]
    for number, waiter in enumerate(waiters):
        waiter.start()
        wait_until(lambda: waiting(caplog) == number + 1)  # noqa: B023
    assert played == []
    first.close()
    for waiter in waiters:
        waiter.join()
    assert played == ["thread", "loop"]
    assert server.most == 1


def test_first_come_first_served(counted, caplog):
    server = counted()
    order = []

    async def play(number):
        env = textcraft(server, kind=AsyncAgentGymEnv, max_envs_per_server=1)
        await env.reset(seed=0)
        order.append(number)
        await env.close()

    async def all_of_them():
        await asyncio.gather(*(play(number) for number in range(8)))

    asyncio.run(all_of_them())
    assert order == list(range(8))
    waited = {"event": "waiting", "servers": [server.url], "most": 1}
    assert [record.agentgym for record in caplog.records] == [waited] * 7


@pytest.mark.parametrize("given_already", [False, True])
def test_who_waits_no_more_leaves_the_place_to_the_next(counted, given_already):
    server = counted()

    async def play():
        first, second, third = (
            textcraft(server, kind=AsyncAgentGymEnv, max_envs_per_server=1) for _ in range(3)
        )
        await first.reset(seed=0)
        waiting = [asyncio.ensure_future(env.reset(seed=0)) for env in (second, third)]
        await asyncio.sleep(0.05)
        assert not any(each.done() for each in waiting)
        if not given_already:
            waiting[0].cancel()
        await first._driver.run(first._episode.close())  # the loop has made no turn since
        waiting[0].cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting[0]
        await asyncio.wait_for(waiting[1], 30)
        for env in (first, second, third):
            await env.close()

    asyncio.run(play())
    with textcraft(server, max_envs_per_server=1) as env:
        env.reset(seed=0)  # at once: there is a place, and nobody waits for it
    assert server.most == 1


def test_a_wait_in_vain_ends_with_advice(counted):
    """As a vector environment that is larger than its bound does."""
    server = counted()
    envs = gymnasium.make_vec("agentgym/TextCraft-v0", num_envs=3, server=server.url, max_envs_per_server=2)
    inside.limit_times(envs.unwrapped.envs[2], create=0.3)
    _, infos = envs.reset(seed=0)
    assert infos["_fault"].tolist() == [False, False, True]
    assert infos["fault"]["kind"][2] == "ServerFull"
    message = infos["fault"]["message"][2]
    assert "holds 2 TextCraft environments on the server" in message
    for way in ("close()", "max_envs_per_server=2", "server=[URL", "timeout={'create'"):
        assert way in message
    envs.close()
    assert server.open == set()


def test_a_server_that_fails_is_not_waited_for(counted, caplog):
    """One is full and the other down: it is the full one that is waited for."""
    full, sick = counted(), counted()
    first = textcraft(full, max_envs_per_server=1)
    first.reset(seed=0)
    sick.broken.add("/create")
    env = textcraft(full, sick, max_envs_per_server=1)
    thread = threading.Thread(target=lambda: env.reset(seed=0))
    thread.start()
    wait_until(lambda: waiting(caplog))
    first.close()
    thread.join()
    assert (full.asked["/create"], full.open) == (2, {1})
    env.close()


def test_an_environment_being_closed_still_uses_its_slot(counted):
    server = counted()
    server.held_up.add("/close")
    first = textcraft(server, max_envs_per_server=1)
    first.reset(seed=0)
    closing = threading.Thread(target=first.close)
    closing.start()
    assert server.arrived.wait(30)
    second = textcraft(server, max_envs_per_server=1)
    inside.limit_times(second, create=0.2)
    with pytest.raises(errors.ServerFull):
        second.reset(seed=0)
    server.let_go.set()
    closing.join()
    inside.limit_times(second, create=60)
    second.reset(seed=0)
    second.close()
