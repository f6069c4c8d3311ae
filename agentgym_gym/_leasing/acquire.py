"""Acquires leases: creates or reuses a remote environment on one of several servers.

The least loaded server without a recent failure comes first. If it fails, the next one is tried.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from agentgym_gym._leasing.late_replies import late_create
from agentgym_gym._leasing.lease import Holder, Lease
from agentgym_gym._leasing.pool import LeasePool, pool_of
from agentgym_gym._leasing.recognition import Memory
from agentgym_gym._leasing.server_choice import reserve_place
from agentgym_gym._text import redact
from agentgym_gym.calls import Flow, InThread, WaitingFlow, at, listening
from agentgym_gym.errors import ArgumentName, Fault, ServerFull, WrongServer

if TYPE_CHECKING:
    from agentgym_gym._http.limits import Stats
    from agentgym_gym._leasing.slots import SlotLock
    from agentgym_gym.catalogue import Environment

__all__ = ["acquire", "acquire_on"]


def acquire(
    environment: Environment,
    servers: Sequence[str],
    task_id: int,
    stats: Stats,
    *,
    most: int | None = None,
    fresh: bool = False,
    holder: Holder | None = None,
) -> WaitingFlow[Lease]:
    """Acquire a lease on the least loaded healthy server with a free slot.

    Args:
        environment: The environment.
        servers: Base URLs of the servers.
        task_id: The first task of the lease.
        stats: Metrics to update, including faults of servers that were skipped.
        most: Limit of environments per server for this process; None for no limit.
        fresh: Whether the remote environment must be new.
        holder: The holder of the lease, which records it.

    Raises:
        WrongServer: The server at an address serves another environment.
        ServerFull: No server had a free slot in time.
        Fault: All servers failed; this is the fault of the last one.
        SetupError: The lock files of a server with a fixed capacity cannot be used.
    """
    holder = holder or Holder()
    pools = [pool_of(environment, server) for server in servers]
    while True:
        try:
            place = yield from reserve_place(pools, most, holder)
        except ServerFull as fault:
            stats.fault(fault, server=servers[0], stage="create")
            raise
        try:
            if isinstance(place, Lease):
                if not fresh:
                    return place
                yield from place.pool.release(place, stats)
                continue
            pool = next(each for each in pools if each is place.pool)
            pools.remove(pool)
            return (yield from acquire_on(pool, task_id, fresh=fresh, holder=holder))
        except Fault as fault:
            stats.fault(fault, server=place.pool.server, stage="create")
            if not pools:
                raise
        finally:
            holder.release_places()  # the lease now counts instead


def acquire_on(
    pool: LeasePool, task_id: int, *, fresh: bool = False, holder: Holder | None = None
) -> WaitingFlow[Lease]:
    """Acquire a lease on one server: on a free environment of this process, or otherwise on a new one.

    The caller has a place in the pool, until the lease counts instead.

    Args:
        pool: The pool of the server.
        task_id: The first task of the lease.
        fresh: Whether the remote environment must be new.
        holder: The holder of the lease, which records it.

    Raises:
        WrongServer: The server at the address serves another environment.
        ServerFull: The server has no free environment.
        ServerUnreachable: The server cannot be reached, or its circuit is open.
        Fault: The server failed.
        SetupError: The lock files of a server with a fixed capacity cannot be used.
    """
    pool.breaker.check()
    try:
        yield from _identify(pool)
        return (yield from _take_slot(pool, task_id, holder or Holder(), fresh=fresh))
    except Fault as fault:
        if not isinstance(fault, ServerFull):
            pool.breaker.deprioritize()
        yield from pool.note_fault(fault)
        raise


def _identify(pool: LeasePool) -> Flow[None]:
    if pool.identified:
        return
    environment, given = pool.environment, pool.server
    wrong: WrongServer | None = None
    for server in environment.wire.base_urls(given):
        memory = Memory()
        try:
            yield from memory.listen(at(server, environment.wire.identify()), pool.gateway)
        except WrongServer as error:
            wrong = wrong or error
            continue
        if memory.served_by is not None:
            pool.slots = None  # this project's own servers enforce their capacity, and never reuse an id
        pool.server = server
        pool.identified = True
        return
    raise WrongServer(
        f"{redact(given)} does not serve {environment.name}: {wrong}. Check ",
        ArgumentName("server"),
        f" and the variable {environment.variable}; `agentgym doctor URL` identifies the server at a URL.",
    )


def _take_slot(pool: LeasePool, task_id: int, holder: Holder, *, fresh: bool) -> WaitingFlow[Lease]:
    """Take a slot, if the server has slots, and an environment for it."""
    if pool.slots is None:
        return (yield from _take_env(pool, None, task_id, holder, fresh=fresh))
    pool.end_quarantine()
    slot: SlotLock | None = yield InThread(pool.slots.take)
    if slot is None:
        raise ServerFull(*_no_slot(pool, pool.slots.capacity))
    try:
        return (yield from _take_env(pool, slot, task_id, holder, fresh=fresh))
    except Exception:
        yield InThread(slot.release)
        raise
    except BaseException:  # after an interrupt a flow must not yield
        pool.slots.release_soon(slot)
        raise


def _take_env(
    pool: LeasePool, slot: SlotLock | None, task_id: int, holder: Holder, *, fresh: bool
) -> WaitingFlow[Lease]:
    """Return a lease on a free environment, on the last one of the slot, or on a new one."""
    wire = pool.environment.wire
    reused = None if fresh else pool.reuse(slot, holder)
    if reused is not None:
        return reused
    listed: tuple[int, ...] | None = None
    if slot is not None:
        listed = yield from at(pool.server, wire.list_envs())
    if slot is not None and listed is not None:
        left = slot.env_id
        if left in listed and not pool.lease_on(left) and not fresh:
            return pool.add_lease(left, holder, fresh=False, slot=slot)
        _check_room(pool, len(listed))
    memory = Memory()
    creating = at(pool.server, listening(wire.create(task_id), late_create(pool, task_id, holder)))
    env_id = yield from memory.listen(creating, pool.gateway)
    if env_id in (listed or ()):
        raise pool.id_in_use(env_id)
    try:
        lease = pool.add_new(env_id, slot, holder, memory)
        if slot is not None:
            slot.env_id = None if listed is None else env_id
            yield InThread(slot.save)
        if pool.journal is not None:
            yield InThread(pool.journal.flush)
    except BaseException:
        if pool.journal is not None:
            pool.journal.flush()  # after an interrupt a flow must not yield
        raise
    return lease


def _no_slot(pool: LeasePool, capacity: int) -> tuple[str, ...]:
    """Return the parts of the message if no slot is free."""
    full = f"{redact(pool.server)} holds at most {capacity} {pool.environment.name} environments, and "
    spread = ("spread over more servers with ", ArgumentName("server"), "=[URL, URL, ...]")
    busy = pool.quarantined
    if not busy:
        return f"{full}the processes of this machine use them all; close some, or ", *spread
    blocked = (
        f"{full}{busy} of these places {'is' if busy == 1 else 'are'} still taken by an environment in which "
        "a request of this process was given up: its time limit was reached, it was interrupted, or its "
        "connection was lost. The request may still be running there, and this server cannot close "
        "environments. The place is free when the server answers it, and in "
        f"{pool.quarantine_left:.0f} seconds in any case. Try again then, give it a longer time limit by "
    )
    return blocked, ArgumentName("timeout"), "={'step': SECONDS}, or ", *spread


def _check_room(pool: LeasePool, there: int) -> None:
    if there >= (pool.environment.wire.capacity or math.inf):
        raise ServerFull(
            f"{redact(pool.server)} holds {there} {pool.environment.name} environments of other clients, "
            "and has no room left; use another server, or restart this one"
        )
