"""Places and ids are given back also when something else comes first: flows driven by hand."""

from __future__ import annotations

import itertools
import time
from dataclasses import dataclass

import pytest

from agentgym_gym import errors, find
from agentgym_gym._http.limits import Stats
from agentgym_gym._leasing.acquire import acquire, acquire_on
from agentgym_gym._leasing.late_replies import late_create
from agentgym_gym._leasing.lease import Holder
from agentgym_gym._leasing.pool import QUARANTINE_SECONDS, LeasePool, pool_of
from agentgym_gym.calls import Call, Reply, WaitForFuture
from by_hand import Endless, make, play
from clock import Clock

_numbers = itertools.count()


def lease_in(pool: LeasePool, env_id: int, *, busy: bool = False, most: int | None = None):
    """Take a place and a lease, as a reset does."""
    place = pool.reserve(most)
    assert place
    lease = pool.add_new(env_id, None)
    place.release()
    lease.maybe_busy = busy
    return lease


def released(pool, lease):
    """Release a lease on a server that closes nothing: no request is needed."""
    with pytest.raises(StopIteration):
        next(pool.release(lease))


def waiting_in(pools):
    """Begin to wait for a place, at most one on each server."""
    flow = acquire(find("Maze"), [pool.server for pool in pools], 0, Stats(), most=1)
    next(flow)
    return flow


@pytest.fixture
def two():
    """Two servers with a place each, both of them taken."""
    number = next(_numbers)  # a pool is known by its address for the whole process
    pools = [pool_of(find("Maze"), f"http://{name}-{number}.test") for name in ("first", "second")]
    for pool in pools:
        pool.identified = True
    yield pools
    for pool in pools:
        pool.clock = lambda: 0.0


def meanwhile(pool, work):
    """Do something, once, while a place is being looked for in a pool."""
    left = [work]

    def clock():
        while left:
            left.pop()()
        return 0.0

    pool.clock = clock


def test_a_place_is_not_lost_when_another_server_is_quicker(two):
    first, second = two
    places = [pool.reserve(1) for pool in two]
    assert all(places)
    flow = waiting_in(two)
    meanwhile(second, places[0].release)  # which gives its place to the one that waits
    places[1].release()
    assert (first.load, second.load) == (1, 0)
    flow.close()
    assert (first.load, second.load) == (0, 0)
    assert [pool.waiting for pool in two] == [{}, {}]


def test_an_idle_environment_is_not_lost_when_another_server_is_quicker(two):
    first, second = two
    place = first.reserve(1)
    assert place
    lease = lease_in(second, 5, most=1)
    flow = waiting_in(two)
    meanwhile(second, place.release)
    second.park(lease)
    flow.close()
    heir = second.take_over(Holder())
    assert heir is not None
    assert heir.env_id == 5
    assert (first.load, second.load) == (0, 1)


def test_who_is_interrupted_hands_an_idle_environment_on(two):
    first, _ = two
    lease = lease_in(first, 5, most=1)
    flow = waiting_in([first])
    first.park(lease)  # it is given to the one that waits, who is interrupted before the next turn
    later = waiting_in([first])
    flow.close()
    with pytest.raises(StopIteration) as done:
        next(later)
    assert done.value.value.env_id == 5
    assert (first.load, first.waiting) == (1, {})


def test_an_id_given_out_again_is_not_set_free_by_its_quarantine(clock):
    """Two episodes would play in one environment."""
    pool = LeasePool(make(Endless()), "http://anew.test", clock=clock)
    released(pool, lease_in(pool, 7, busy=True))
    assert pool.quarantined == 1
    lease_in(pool, 7)  # the server has started again, and counts from the beginning
    assert pool.quarantined == 0
    clock.now += QUARANTINE_SECONDS
    assert pool.reuse(None, Holder()) is None


def test_a_late_answer_ends_only_its_own_quarantine(clock):
    pool = LeasePool(make(Endless()), "http://answered.test", clock=clock)
    first, second = [lease_in(pool, env_id, busy=True) for env_id in (7, 8)]
    released(pool, first)
    released(pool, second)
    pool.note_answered(first)
    assert pool.quarantined == 1
    assert pool.reuse(None, Holder()).env_id == 7
    clock.now += QUARANTINE_SECONDS
    assert pool.reuse(None, Holder()).env_id == 8


def test_an_id_is_free_when_its_own_quarantine_is_over(clock):
    pool = LeasePool(make(Endless()), "http://over.test", clock=clock)
    released(pool, lease_in(pool, 7, busy=True))
    clock.now += 1.0
    released(pool, lease_in(pool, 8, busy=True))
    clock.now += QUARANTINE_SECONDS - 1.5
    assert pool.reuse(None, Holder()) is None
    assert pool.quarantine_left == pytest.approx(0.5)
    clock.now += 0.5
    assert pool.reuse(None, Holder()).env_id == 7
    assert pool.reuse(None, Holder()) is None
    assert pool.quarantined == 1


@pytest.fixture
def clock():
    return Clock()


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


def test_the_latency_of_a_server_is_measured_over_its_recent_steps():
    pool = LeasePool(make(Endless()), "http://latency.test")
    for seconds in (1.0, 1.0, None, 2.0):
        pool.note_reply(seconds)
    assert pool.latency == pytest.approx(1.2)
    for _ in range(30):
        pool.note_reply(0.1)
    assert pool.latency == pytest.approx(0.1, abs=0.01)


@dataclass(eq=False)
class Line:
    """A connection."""

    lives: bool
    opened: int = 0


@pytest.mark.parametrize("lives", [True, False])
def test_a_late_id_of_a_server_that_is_gone_takes_none_from_its_successor(lives):
    pool = pool_of(find("TextCraft"), f"http://late-{lives}.test")
    lease = pool.add_new(0, None)
    late, connection = late_create(pool, 3, Holder()), Line(lives)
    late(
        Reply(Call("create", "POST", "/create", server=pool.server), 200, b'{"id": 0}', connection=connection)
    )
    assert lease.current == (not lives)
