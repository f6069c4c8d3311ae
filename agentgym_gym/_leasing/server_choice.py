"""Selects a server with a free place, and waits for one if there is none.

If this process has reached its limit on each server, the caller waits: first come, first served, for the
first free place on any server. A lease whose episode is over passes to a waiting caller.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from concurrent.futures import Future
from typing import TYPE_CHECKING

from agentgym_gym._leasing.lease import Holder, Lease
from agentgym_gym._leasing.pool import LeasePool, Waiter
from agentgym_gym._logging import log
from agentgym_gym._text import redact
from agentgym_gym.calls import WaitForFuture, WaitingFlow
from agentgym_gym.errors import ArgumentName, ServerFull

if TYPE_CHECKING:
    from agentgym_gym._leasing.reservation import Reservation

__all__ = ["reserve_place"]


def reserve_place(
    pools: Sequence[LeasePool], most: int | None, holder: Holder
) -> WaitingFlow[Reservation | Lease]:
    """Return a reservation in a pool, or an idle lease; wait if there is neither.

    Args:
        pools: The pools of the servers; the least loaded one without a recent failure comes first, and among
            equally loaded ones the one whose steps took the least time recently.
        most: Limit of environments per pool for this process; None for no limit.
        holder: The holder of an idle lease.

    Raises:
        ServerFull: There was no free place in time.
    """
    ranked = sorted(pools, key=lambda pool: (pool.breaker.deprioritized, pool.load, pool.latency))
    for pool in ranked:
        place = pool.reserve(most, holder)
        if place is not None:
            return place
    for pool in ranked:
        lease = pool.take_over(holder)
        if lease is not None:
            return lease
    return (yield from _wait_for_place(pools, most, holder))


def _wait_for_place(
    pools: Sequence[LeasePool], most: int | None, holder: Holder
) -> WaitingFlow[Reservation | Lease]:
    """Wait in all pools for the first free place."""
    turn = Waiter(most or 0, Future(), holder)
    log(logging.INFO, "waiting", servers=[redact(pool.server) for pool in pools], most=most)
    began = time.monotonic()
    try:
        for pool in pools:
            pool.waiting[turn] = None
            pool.offer()  # places that were released before this flow started to wait
        while not turn.place.done():
            yield WaitForFuture(turn.place, min(pool.quarantine_left for pool in pools), began)
            for pool in pools:
                pool.offer()  # places whose quarantine is over
        if turn.place.cancelled():
            raise ServerFull(*_no_place(pools, most))
        return turn.place.result()
    except BaseException:
        if not turn.place.cancel():
            _return_place(turn.place.result())
        raise
    finally:
        for pool in pools:
            pool.waiting.pop(turn, None)


def _return_place(place: Reservation | Lease) -> None:
    """Return an unused place."""
    if isinstance(place, Lease):
        place.pool.park(place)
    else:
        place.release()


def _no_place(pools: Sequence[LeasePool], most: int | None) -> tuple[str, ...]:
    """Return the parts of the message if no place is free."""
    name = pools[0].environment.name
    where = "the server" if len(pools) == 1 else f"each of the {len(pools)} servers"
    held = (
        f"this process holds {most} {name} environments on {where}, as many as max_envs_per_server={most} "
        "allows, and none was released in time: close() those that are done with, play fewer at once, add "
        "servers by "
    )
    return (
        held,
        ArgumentName("server"),
        "=[URL, URL, ...], or give it a longer time limit by ",
        ArgumentName("timeout"),
        "={'create': SECONDS}",
    )
