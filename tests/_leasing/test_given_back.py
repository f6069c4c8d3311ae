"""Places, ids and records are given back also when something else comes first: flows driven by hand."""

from __future__ import annotations

import errno
import itertools
import threading
from pathlib import Path

import pytest

from agentgym_gym import errors, find
from agentgym_gym._http.limits import Stats
from agentgym_gym._leasing import journal as journals
from agentgym_gym._leasing.acquire import acquire
from agentgym_gym._leasing.circuit_breaker import CircuitBreaker
from agentgym_gym._leasing.journal import LeaseJournal
from agentgym_gym._leasing.lease import Holder
from agentgym_gym._leasing.pool import LeasePool
from agentgym_gym._leasing.pools import pool_of
from agentgym_gym._leasing.quarantine import QUARANTINE_SECONDS
from by_hand import Endless, make
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


def test_an_id_given_out_anew_is_not_set_free_by_its_quarantine(clock):
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


def seconds_shut_out(server, clock):
    """Return after how many seconds a server is tried again."""
    began = clock.now
    while True:
        try:
            server.check()
        except errors.ServerUnreachable:
            clock.now += 0.5
        else:
            return clock.now - began


def test_a_server_that_has_recovered_is_shut_out_no_longer_than_at_first(clock):
    server = CircuitBreaker("http://x", clock=clock)
    late = errors.ServerTimeout("late")
    for _ in range(3):
        server.note(late)
    assert [seconds_shut_out(server, clock) for _ in range(3)] == [10, 20, 40]
    server.note(None)
    for _ in range(3):
        server.note(late)
    assert [seconds_shut_out(server, clock) for _ in range(6)] == [10, 20, 40, 80, 120, 120]


@pytest.mark.parametrize("operation", ["touch", "unlink"])
def test_what_could_not_be_written_of_one_environment_is_written_with_the_next(monkeypatch, operation):
    journal = LeaseJournal("TextCraft", "http://full.test")
    if operation == "unlink":
        journal.add(5)
        journal.flush()
    working = getattr(Path, operation)

    def fails_for_one(path, *args, **options):
        if path.name == "5":
            raise OSError(errno.ENOSPC, "no space left on the device")
        working(path, *args, **options)

    with monkeypatch.context() as patch:
        patch.setattr(Path, operation, fails_for_one)
        (journal.add if operation == "touch" else journal.discard)(5)
        journal.flush()
    journal.add(6)
    journal.flush()
    (record,) = journals.records("http://full.test")
    assert list(record.ids) == ([5, 6] if operation == "touch" else [6])


def test_a_record_is_removed_also_while_another_thread_writes_it(monkeypatch):
    """As an environment that is closed in one thread while another writes what was made so far."""
    journal = LeaseJournal("TextCraft", "http://torn.test")
    touch, being_written = Path.touch, threading.Event()

    def close():
        assert being_written.wait(30)
        journal.discard(5)
        journal.flush()

    closing = threading.Thread(target=close)

    def slow(path, *args, **options):
        if path.name == "5":
            being_written.set()
            closing.join(0.3)  # it has to wait for this thread, or is quicker
        touch(path, *args, **options)

    monkeypatch.setattr(Path, "touch", slow)
    closing.start()
    for env_id in (5, 6):
        journal.add(env_id)
    journal.flush()
    closing.join()
    (record,) = journals.records("http://torn.test")
    assert list(record.ids) == [6]
