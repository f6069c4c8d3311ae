"""On which of several servers an episode is played, and waiting until one has a place.

The least loaded server that did not just fail comes first. One that fails is passed over, and one on which
this process holds all that it may is waited for: first come, first served, whichever server is free first.
What an episode that is over still holds, for its environment's next one, is handed on to whoever waits.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from concurrent.futures import Future
from typing import TYPE_CHECKING

from agentgym_gym._leasing.lease import Lease, Waiter
from agentgym_gym._leasing.pool import LeasePool, pool_of
from agentgym_gym._logging import log
from agentgym_gym._text import redact
from agentgym_gym.calls import Wait, WaitingFlow
from agentgym_gym.errors import Fault, ServerFull

if TYPE_CHECKING:
    from agentgym_gym._http.limits import Stats
    from agentgym_gym.catalogue import Environment

__all__ = ["acquire"]


def acquire(
    environment: Environment,
    servers: Sequence[str],
    task_id: int,
    stats: Stats,
    *,
    most: int | None = None,
    fresh: bool = False,
) -> WaitingFlow[Lease]:
    """Take a lease on the least loaded server that does its part and has room.

    Args:
        environment: What is played.
        servers: Base URLs of the servers.
        task_id: The task that will be played first.
        stats: Where faults are counted, also those of servers that are then passed over.
        most: How many environments this process may hold on each server; None for no limit.
        fresh: Whether only a new environment will do.

    Raises:
        WrongServer: Another environment answers at an address.
        ServerFull: None had room in time.
        Fault: None did its part; that of the last that was asked.
    """
    pools = [pool_of(environment, server) for server in servers]
    while True:
        try:
            place = yield from _place(pools, most)
        except ServerFull as fault:
            stats.fault(fault, server=servers[0], stage="create")
            raise
        if isinstance(place, Lease):
            if not fresh:
                return place
            yield from place.pool.release(place, stats)
            continue
        pools.remove(place)
        try:
            return (yield from place.acquire(task_id, fresh=fresh, reserved=True))
        except Fault as fault:
            stats.fault(fault, server=place.server, stage="create")
            if not pools:
                raise


def _place(pools: Sequence[LeasePool], most: int | None) -> WaitingFlow[LeasePool | Lease]:
    """Return one of the pools, where a place is reserved, or an idle lease, as soon as there is either."""
    ranked = sorted(pools, key=lambda pool: (pool.breaker.deprioritized, pool.load))
    for pool in ranked:
        if pool.reserve(most):
            return pool
    for pool in ranked:
        lease = pool.take_over()
        if lease is not None:
            return lease
    return (yield from _in_line(pools, most))


def _in_line(pools: Sequence[LeasePool], most: int | None) -> WaitingFlow[LeasePool | Lease]:
    """Wait in all pools for the first place there is."""
    turn = Waiter(most or 0, Future())
    log(logging.INFO, "waiting", servers=[redact(pool.server) for pool in pools], most=most)
    began = time.monotonic()
    try:
        for pool in pools:
            pool.waiting[turn] = None
            pool.offer()  # what was given back before we stood in line
        while not turn.place.done():
            yield Wait(turn.place, min(pool.quarantine_left for pool in pools), began)
            for pool in pools:
                pool.offer()  # what has rested long enough
        if turn.place.cancelled():
            raise ServerFull(_advice(pools, most))
        return turn.place.result()
    except BaseException:
        if not turn.place.cancel():
            _pass_on(turn.place.result())
        raise
    finally:
        for pool in pools:
            pool.waiting.pop(turn, None)


def _pass_on(place: LeasePool | Lease) -> None:
    """Give up a place for which there is no use any more."""
    if isinstance(place, Lease):
        place.pool.park(place)
    else:
        place.unreserve()


def _advice(pools: Sequence[LeasePool], most: int | None) -> str:
    name = pools[0].environment.name
    where = "the server" if len(pools) == 1 else f"each of the {len(pools)} servers"
    return (
        f"this process holds {most} {name} environments on {where}, as many as max_envs_per_server={most} "
        "allows, and none was given back in time: close() those that are done with, play fewer at once, add "
        "servers by server=[URL, URL, ...], or give it a longer time limit by timeout={'create': SECONDS}"
    )
