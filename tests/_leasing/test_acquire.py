"""Several servers for one environment, and a bound on what is held on each: over real sockets."""

from __future__ import annotations

import asyncio
import threading
import time
from collections import Counter

import gymnasium
import pytest

from agentgym_gym import AgentGymEnv, AsyncAgentGymEnv, errors, find
from agentgym_gym._http.limits import Stats
from agentgym_gym._leasing.acquire import acquire, acquire_on
from agentgym_gym._leasing.circuit_breaker import OPEN_SECONDS
from agentgym_gym._leasing.pools import pool_of
from agentgym_gym._leasing.quarantine import QUARANTINE_SECONDS
from agentgym_gym.calls import WaitForFuture
from agentgym_gym.local_servers import LocalServer
from by_hand import play


def textcraft(*servers, kind=AgentGymEnv, **options):
    return kind("TextCraft", server=[server.url for server in servers], **options)


def where(envs):
    return Counter(env._episode.lease.server for env in envs)


def someone_waits(server, number=1):
    """Wait until that many flows wait for a place."""
    pool = pool_of(find("TextCraft"), server.url)
    deadline = time.monotonic() + 30
    while len(pool.waiting) < number:
        assert time.monotonic() < deadline, "nobody waits"
        time.sleep(0.01)


# --------------------------------------------------------------------------------------------- which server


def test_the_least_loaded_server_is_used(counted):
    servers = [counted(), counted()]
    envs = [textcraft(*servers) for _ in range(4)]
    for env in envs:
        env.reset(seed=0)
    assert sorted(where(envs).values()) == [2, 2]
    for env in envs:
        env.close()
    assert [server.open for server in servers] == [set(), set()]


def test_those_that_begin_at_once_spread_too(counted):
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
    for env in envs:
        env.reset(seed=0)
    seconds = dict(zip(where(envs), (0.3, 0.1, 0.2), strict=True))  # by the order of choice
    for env in envs:
        pool = pool_of(find("TextCraft"), env._episode.lease.server)
        assert pool.latency == 0
        env.step("Action: inventory")
        assert 0 < pool.latency < 5
        pool.latency = seconds[pool.server]
        env.close()
    later = [textcraft(*servers) for _ in range(4)]
    for env in later:
        env.reset(seed=0)
    first, second, third = list(seconds)
    assert [env._episode.lease.server for env in later] == [second, third, first, second]
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
    for env in others:
        env.reset(seed=0)
    assert where([first, *others]) == {well.url: 4}
    assert sick.asked["/create"] == 1
    sick.broken.clear()
    later = time.monotonic() + OPEN_SECONDS
    for server in (sick, well):
        pool_of(find("TextCraft"), server.url).breaker.clock = lambda: later
    late = textcraft(sick, well)
    late.reset(seed=0)
    assert where([late]) == {sick.url: 1}
    for env in [first, late, *others]:
        env.close()


def test_where_all_fail_the_fault_of_the_last_is_told(counted):
    servers = [counted(), counted()]
    for server in servers:
        server.broken.add("/create")
    env = textcraft(*servers)
    with pytest.raises(errors.ServerError, match="/create answered HTTP 500"):
        env.reset(seed=0)
    assert [server.asked["/create"] for server in servers] == [1, 1]
    for server in servers:
        server.broken.clear()
    env.reset(seed=0)  # deprioritized, and all there is
    env.close()


def test_ids_are_used_again_on_a_server_that_closes_nothing():
    maze = LocalServer("maze")
    maze.start()
    ids = set()
    for task in range(4):
        env = AgentGymEnv("Maze", server=maze.url)
        env.reset(options={"task_id": task})
        ids.add(env._episode.lease.env_id)
        env.close()
    maze.stop()
    assert ids == {0}


def test_an_id_in_use_that_is_given_out_again_is_refused_with_advice(counted):
    server = counted({"/": "ok", "/create": 5, "/reset": ["x", None], "/observation": "WebShop [SEP] Search"})
    first, second = (AgentGymEnv("WebShop", server=server.url) for _ in range(2))
    first.reset(seed=0)
    with pytest.raises(errors.ServerFull, match=r"gave out id 5, which is in use: it is full.*more servers"):
        second.reset(seed=0)
    first._episode.lease.check()  # and is not disturbed
    second.close()
    first.close()


# ------------------------------------------------------------------------------------------------- the bound


def test_no_more_are_held_than_wanted_and_the_others_wait(counted):
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


def test_what_an_episode_that_is_over_holds_is_handed_on(counted):
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


def test_what_an_episode_holds_that_goes_on_is_not_handed_on(counted):
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


def test_a_place_that_is_handed_on_on_a_server_of_few_stays_taken():
    pool = pool_of(find("TODOList"), "http://handed-on.test")
    pool.identified = True
    place = pool.reserve(1)
    assert place
    lease = pool.add_new(7, pool.slots.take())
    place.release()
    pool.park(lease)
    with pytest.raises(StopIteration) as done:
        next(acquire(find("TODOList"), [pool.server], 0, Stats(), most=1))
    heir = done.value.value
    assert (heir.env_id, heir.current, lease.current) == (7, True, False)
    play(pool.release(lease))
    with pytest.raises(errors.ServerFull):
        play(acquire_on(pool, 0))
    play(pool.release(heir))
    pool.slots.take().release()


def test_threads_wait_for_threads_and_event_loops_for_both(counted):
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
        someone_waits(server, number + 1)
    assert played == []
    first.close()
    for waiter in waiters:
        waiter.join()
    assert played == ["thread", "loop"]
    assert server.most == 1


def test_first_come_first_served(counted, caplog):
    caplog.set_level("INFO", "agentgym_gym")
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
        await first._driver.run(first._episode.close())  # no turn of the loop lies behind it
        waiting[0].cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting[0]
        await asyncio.wait_for(waiting[1], 30)
        for env in (first, second, third):
            await env.close()

    asyncio.run(play())
    pool = pool_of(find("TextCraft"), server.url)
    assert (server.most, pool.load, pool.waiting) == (1, 0, {})


def test_who_waits_in_vain_is_told_what_to_do(counted):
    """As a vector environment that is larger than its bound does."""
    server = counted()
    envs = gymnasium.make_vec(
        "agentgym/TextCraft-v0", num_envs=3, server=server.url, max_envs_per_server=2, timeout={"create": 0.3}
    )
    _, infos = envs.reset(seed=0)
    assert infos["_fault"].tolist() == [False, False, True]
    assert infos["fault"]["kind"][2] == "ServerFull"
    message = infos["fault"]["message"][2]
    assert "holds 2 TextCraft environments on the server" in message
    for way in ("close()", "max_envs_per_server=2", "server=[URL", "timeout={'create'"):
        assert way in message
    envs.close()
    assert server.open == set()


def test_an_episode_s_own_time_limit_ends_the_wait(counted):
    server = counted()
    first = textcraft(server, max_envs_per_server=1)
    first.reset(seed=0)
    second = textcraft(server, max_envs_per_server=1, timeout={"episode": 0.2})
    with pytest.raises(errors.ServerFull):
        second.reset(seed=0)
    first.close()


def test_a_server_that_fails_is_not_waited_for(counted):
    """One is full and the other down: it is the full one that is waited for."""
    full, sick = counted(), counted()
    first = textcraft(full, max_envs_per_server=1)
    first.reset(seed=0)
    sick.broken.add("/create")
    env = textcraft(full, sick, max_envs_per_server=1)
    thread = threading.Thread(target=lambda: env.reset(seed=0))
    thread.start()
    someone_waits(full)
    first.close()
    thread.join()
    assert where([env]) == {full.url: 1}
    env.close()


def test_what_is_being_closed_still_takes_its_place(counted):
    server = counted()
    server.held_up.add("/close")
    first = textcraft(server, max_envs_per_server=1)
    first.reset(seed=0)
    closing = threading.Thread(target=first.close)
    closing.start()
    assert server.arrived.wait(30)
    second = textcraft(server, max_envs_per_server=1, timeout={"create": 0.2})
    with pytest.raises(errors.ServerFull):
        second.reset(seed=0)
    server.let_go.set()
    closing.join()
    second.reset(seed=0)
    second.close()


def test_an_id_in_quarantine_takes_its_place_until_it_may_be_used_again():
    maze = find("Maze")
    pool = pool_of(maze, "http://quarantine.test")
    pool.identified = True
    place = pool.reserve(1)
    assert place
    lease = pool.add_new(7, None)
    place.release()
    lease.maybe_busy = True
    with pytest.raises(StopIteration):
        next(pool.release(lease))
    assert not pool.reserve(1)
    flow = acquire(maze, [pool.server], 0, Stats(), most=1)
    asked = next(flow)
    assert isinstance(asked, WaitForFuture)
    assert 0 < asked.seconds <= QUARANTINE_SECONDS
    later = time.monotonic() + QUARANTINE_SECONDS
    pool.clock = lambda: later
    with pytest.raises(StopIteration) as done:
        next(flow)
    assert (done.value.value.env_id, pool.load) == (7, 1)


def test_an_interrupted_wait_leaves_no_trace():
    pool = pool_of(find("Maze"), "http://interrupted.test")
    place = pool.reserve(1)
    assert place
    flow = acquire(find("Maze"), [pool.server], 0, Stats(), most=1)
    next(flow)
    flow.close()
    assert (pool.waiting, pool.load) == ({}, 1)
    flow = acquire(find("Maze"), [pool.server], 0, Stats(), most=1)
    next(flow)
    place.release()  # which hands the place on
    assert pool.load == 1
    flow.close()
    assert (pool.waiting, pool.load) == ({}, 0)
