"""Lease pools: the remote environments that this process may use.

Some servers never free ids, some return ids that are in use, and after a restart ids start at 0 again. A
:class:`LeasePool` tracks the ids of all threads of this process, so that no two episodes share one.
"""

from __future__ import annotations

import logging
import math
import threading
import time
import weakref
from concurrent.futures import Future, InvalidStateError
from typing import TYPE_CHECKING, Any, NamedTuple

from agentgym_gym._leasing.circuit_breaker import CircuitBreaker
from agentgym_gym._leasing.journal import LeaseJournal
from agentgym_gym._leasing.lease import Holder, Lease
from agentgym_gym._leasing.recognition import Gateway, Memory, run_own
from agentgym_gym._leasing.reservation import Reservation
from agentgym_gym._leasing.slots import SlotLock, Slots
from agentgym_gym._lifecycle import after_fork_in_child
from agentgym_gym._logging import log
from agentgym_gym._text import redact
from agentgym_gym.calls import InThread, ServerConnection, WaitingFlow
from agentgym_gym.errors import ConnectionLost, Fault, LeaseLost, ServerFull, ServerTimeout, ServerUnreachable

if TYPE_CHECKING:
    from collections.abc import Callable

    from agentgym_gym._http.limits import Stats
    from agentgym_gym.catalogue import Environment

__all__ = ["QUARANTINE_SECONDS", "LeasePool", "Waiter", "pool_of"]

QUARANTINE_SECONDS = 300.0
"""Seconds for which an id is in quarantine: it cannot be closed, and an abandoned request may run there."""

_RECENT = 0.2
"""The weight of the latest step in the mean latency."""


class LeasePool:
    """All leases of this process on one server.

    Args:
        environment: The environment that the server provides.
        server: Its base URL.

    Attributes:
        breaker: The circuit breaker of the server.
        slots: The slots of the server; None if its capacity is not fixed.
        journal: The record of the leases; None if the server cannot close environments.
        identified: Whether a check has confirmed that the server provides the environment.
        epoch: How often the server went down.
        gateway: The state of a gateway in front of the server.
        latency: The exponential mean of the seconds of recent steps; 0 before the first one.
        waiting: Callers that wait for a place, first come, first served.
        clock: Returns the time in seconds; `time.monotonic`, or the clock of a test.
    """

    def __init__(
        self, environment: Environment, server: str, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.environment = environment
        self.server = server
        self.clock = clock
        self.breaker = CircuitBreaker(server, clock=clock)
        self.epoch = 0
        self.gateway = Gateway()
        self.latency = 0.0
        self.waiting: dict[Waiter, None] = {}
        self._held: dict[int, Lease] = {}
        self._unclosed: weakref.WeakValueDictionary[int, Lease] = weakref.WeakValueDictionary()
        self._free: list[int] = []
        self._memories: dict[int, Memory] = {}  # of the environments without a lease
        self._quarantine: dict[Lease, float] = {}  # the end of each, in order
        capacity = environment.wire.capacity
        self.slots = None if capacity is None else Slots(server, capacity)
        self.journal = LeaseJournal(environment.name, server) if environment.wire.closes else None
        self._reserved = set[int]()
        self.identified = False
        # Reentrant, because the garbage collector may run while the lock is held, and release a lease.
        self._lock = threading.RLock()

    @property
    def load(self) -> int:
        """Number of leases, including those being acquired or released."""
        with self._lock:
            return len(self._held) + len(self._reserved)

    @property
    def quarantined(self) -> int:
        """Number of ids in quarantine."""
        return len(self._quarantine)

    @property
    def quarantine_left(self) -> float:
        """Seconds until the next id leaves quarantine; infinite if there is none."""
        with self._lock:
            return max(0.0, next(iter(self._quarantine.values()), math.inf) - self.clock())

    def reserve(self, most: int | None = None, holder: Holder | None = None) -> Reservation | None:
        """Reserve a place for a lease that will be acquired; it counts as held from now on.

        Args:
            most: Limit of environments for this process, including those in quarantine; None for no limit.
            holder: The holder of the future lease, which records the reservation.

        Returns:
            The reservation; None if there was no place.
        """
        with self._lock:
            self.end_quarantine()
            if most is not None and self.load + len(self._quarantine) >= most:
                return None
            return (holder or Holder()).reserve(self, self._reserved)

    def offer(self) -> None:
        """Assign free places to waiting callers."""
        with self._lock:
            refused = 0
            for turn in list(self.waiting):
                if turn.most <= refused or turn.place.done():
                    continue
                place = self.reserve(turn.most, turn.holder) or self.take_over(turn.holder)
                if place is None:
                    refused = turn.most
                    continue
                try:
                    turn.place.set_result(place)
                except InvalidStateError:  # another server was first, or the waiter gave up
                    if isinstance(place, Lease):
                        place.idle = True
                    else:
                        place.release()

    def park(self, lease: Lease) -> None:
        """Mark a lease as idle: its episode is over, and a waiter may take it until the next one starts."""
        with self._lock:
            lease.idle = True
            self.offer()

    def resume(self, lease: Lease) -> bool:
        """Mark a lease as in use for another episode; return whether its holder still has it."""
        with self._lock:
            lease.idle = False
            return lease.current

    def take_over(self, holder: Holder) -> Lease | None:
        """Move an idle lease, which its holder does not need before the next reset, to another holder."""
        with self._lock:
            lease = next((each for each in self._held.values() if each.idle and each.current), None)
            if lease is None:
                return None
            self._memories[lease.env_id] = lease.memory
            heir = self.add_lease(lease.env_id, holder, fresh=False, slot=lease.slot)
            lease.revoke(f"has another episode in remote environment {lease.env_id}")
            lease.slot = None
            return heir

    def end_quarantine(self) -> None:
        """Free the ids whose quarantine is over."""
        with self._lock:
            now = self.clock()
            for lease in [each for each, end in self._quarantine.items() if end <= now]:
                del self._quarantine[lease]
                self._keep(lease)
                self._release_soon(lease.slot)

    def reuse(self, slot: SlotLock | None, holder: Holder) -> Lease | None:
        """Return a lease on a free id; None if there is none."""
        self.end_quarantine()
        with self._lock:
            return self.add_lease(self._free.pop(), holder, fresh=False, slot=slot) if self._free else None

    def add_new(
        self, env_id: int, slot: SlotLock | None, holder: Holder | None = None, memory: Memory | None = None
    ) -> Lease:
        """Return a lease on an id that the server has just assigned.

        Args:
            env_id: The id.
            slot: Its slot, if it has one.
            holder: The holder of the lease, which records it.
            memory: The last known state of the environment.

        Raises:
            ServerFull: The id is in use.
        """
        with self._lock:
            before = self._held.get(env_id)
            if before is not None:
                if self.environment.wire.reissues_ids and before.current:
                    raise self.id_in_use(env_id)
                before.revoke(_restarted(env_id))  # such ids repeat only after a restart
                self._log("lease lost", env_id)
            unclosed = self._unclosed.pop(env_id, None)
            if unclosed is not None:
                unclosed.revoke(_restarted(env_id))  # for the same reason
            if env_id in self._free:
                self._free.remove(env_id)
            self._memories[env_id] = memory or Memory()
            for lease in [each for each in self._quarantine if each.env_id == env_id]:
                del self._quarantine[lease]
            if self.journal is not None:
                self.journal.add(env_id)
            return self.add_lease(env_id, holder or Holder(), fresh=True, slot=slot)

    def lease_on(self, env_id: int) -> Lease | None:
        """Return the lease of this process on an id, including one whose environment may still be open."""
        return self._held.get(env_id) or self._unclosed.get(env_id)

    def open_connection(self, before: float = math.inf) -> ServerConnection | None:
        """Return an open connection of a lease: the server was not restarted since it was opened.

        A server has one process at a time, unless there is a load balancer in front of it.

        Args:
            before: `ServerConnection.opened` of a connection that was opened later.
        """
        with self._lock:
            known = [lease.memory.connection for lease in self._held.values()]
        older = (each for each in known if each is not None and each.opened < before)
        return next((each for each in older if each.lives), None)

    def id_in_use(self, env_id: int) -> ServerFull:
        """Return the fault for a server that assigned an id which is in use."""
        return ServerFull(
            f"{redact(self.server)} gave out id {env_id}, which is in use: it is full. Close some "
            "environments, or use more servers"
        )

    def add_lease(self, env_id: int, holder: Holder, *, fresh: bool, slot: SlotLock | None) -> Lease:
        """Return a new lease on an id without a lease."""
        memory = self._memories.pop(env_id, None)
        lease = Lease(self, env_id, epoch=self.epoch, fresh=fresh, slot=slot, memory=memory)
        holder.leases.append(lease)
        self._held[env_id] = lease
        self._log("lease made", env_id, fresh=fresh)
        return lease

    def release(self, lease: Lease, stats: Stats | None = None) -> WaitingFlow[bool]:
        """Release a remote environment: close it if the server can, or otherwise keep its id for reuse.

        It never raises a fault, since no caller could handle it. If it is interrupted before the server has
        answered, the lease is unchanged. Call it again if `Lease.unclosed` is true.

        Args:
            lease: The lease; must not be used afterwards.
            stats: Metrics to update.

        Returns:
            False if the server failed to close the environment.
        """
        if lease.released and not lease.unclosed:
            return True
        current = self.resume(lease)
        self._log("lease released", lease.env_id, current=current)
        slot = lease.slot if lease.ours else None
        closed = True
        if current and self.environment.wire.closes:
            closed = yield from self._close(lease, stats)
        elif current and lease.maybe_busy and not lease.answered:
            with self._lock:  # including its slot
                self._let_go(lease)
                self._quarantine[lease] = self.clock() + QUARANTINE_SECONDS
                self.offer()
            return True
        with self._lock:
            self._let_go(lease)
            place = lease.place = Reservation(self, self._reserved)  # until its slot is free
            place.take()
            if current and not self.environment.wire.closes:  # otherwise another client may have the id
                self._keep(lease)
        try:
            if slot is not None:
                yield InThread(slot.release)
        except BaseException:  # after an interrupt a flow must not yield
            self._release_soon(slot)
            raise
        finally:
            place.release()
        return closed

    def _let_go(self, lease: Lease) -> None:
        lease.released = True
        if self._held.get(lease.env_id) is lease:
            del self._held[lease.env_id]

    def _close(self, lease: Lease, stats: Stats | None) -> WaitingFlow[bool]:
        """Close a remote environment; return whether the server did."""
        try:
            yield from run_own(
                lease, lambda: self.environment.wire.close(lease.env_id), stats, within="close"
            )
        except Fault as error:
            if stats is not None:
                stats.fault(error, server=self.server, stage="close")
            self._log("lease not closed", lease.env_id, message=str(error))
            lease.unclosed = (
                lease.memory.unseen
                or isinstance(error, (ServerTimeout, ConnectionLost))
                or (isinstance(error, ServerUnreachable) and error.refused is False)
            )
            if lease.unclosed:
                self._unclosed[lease.env_id] = lease
            return isinstance(error, LeaseLost)  # the server has answered
        lease.unclosed = False
        self._unclosed.pop(lease.env_id, None)
        if self.journal is not None:
            self.journal.discard(lease.env_id)
            yield InThread(self.journal.flush)
        return True

    def note_answered(self, lease: Lease) -> None:
        """Record that the server has answered the abandoned request of an environment."""
        with self._lock:
            lease.answered = True
            if self._quarantine.pop(lease, None) is not None:
                self._keep(lease)
                self._release_soon(lease.slot)
            self.offer()

    def forget(self, lease: Lease) -> WaitingFlow[None]:
        """Give up a lease whose id belongs to another environment."""
        with self._lock:
            lease.revoke(f"has another client's environment under the id {lease.env_id}, or none")
            # Another lease may have the id by now.
            journal = self.journal if self._held.get(lease.env_id, lease) is lease else None
            if journal is not None:
                journal.discard(lease.env_id)
        self._log("lease lost", lease.env_id)
        if journal is not None:
            yield InThread(journal.flush)

    def note_reply(self, latency: float | None = None) -> None:
        """Record that the server answered a call.

        Args:
            latency: The seconds of the call, if it was a step.
        """
        self.breaker.note(None)
        if latency is not None:  # without the lock: a lost update does no harm
            self.latency += (latency - self.latency) * _RECENT if self.latency else latency

    def note_fault(self, fault: Fault) -> WaitingFlow[None]:
        """Record the fault of a failed call; if the server was down, its environments may be lost.

        While the connection of a lease is open, the server runs, and each other environment will be checked.
        """
        self.breaker.note(fault)
        if not (isinstance(fault, ServerUnreachable) and fault.refused) or self.open_connection():
            return
        with self._lock:
            lost = [lease.env_id for lease in self._held.values() if lease.current]
            self.epoch += 1
            self.identified = False
            self._free.clear()
            self._unclosed.clear()
            self._memories.clear()
            self._held.clear()  # they are unusable, and must not count
            while self._quarantine:
                self._release_soon(self._quarantine.popitem()[0].slot)
            if self.journal is not None:
                self.journal.clear()
            self.offer()
        for env_id in lost:
            self._log("lease lost", env_id)
        if self.journal is not None:
            yield InThread(self.journal.flush)

    def _keep(self, lease: Lease) -> None:
        """Keep an environment that cannot be closed for reuse, in its slot if the slot has its id."""
        in_slot = lease.slot is not None and lease.slot.env_id == lease.env_id
        self._memories[lease.env_id] = lease.memory
        if lease.unusable and lease.slot is not None:
            lease.slot.env_id = None
        elif not lease.unusable and not in_slot:
            with self._lock:
                self._free.append(lease.env_id)

    def _release_soon(self, slot: SlotLock | None) -> None:
        if self.slots is not None and slot is not None:
            self.slots.release_soon(slot)

    def _log(self, event: str, env_id: int, **facts: Any) -> None:
        log(logging.DEBUG, event, server=redact(self.server), env_id=env_id, **facts)


def _restarted(env_id: int) -> str:
    return f"was restarted: it gave out the id {env_id} again, and the remote environment under it is lost"


class Waiter(NamedTuple):
    """A caller that waits for a place in one of several pools.

    Attributes:
        most: Limit of environments for the pool, including this one.
        place: Resolved with a reservation or a lease; cancelled when the caller stops waiting.
        holder: The holder of the future lease.
    """

    most: int
    place: Future[Reservation | Lease]
    holder: Holder


_pools: dict[tuple[int, str], LeasePool] = {}
_pools_lock = threading.Lock()


def pool_of(environment: Environment, server: str) -> LeasePool:
    """Return this process's only pool for a server."""
    with _pools_lock:
        key = (id(environment), server)  # the pool keeps the environment alive, so the id stays unique
        if key not in _pools:
            _pools[key] = LeasePool(environment, server)
        return _pools[key]


def _forget_pools() -> None:
    """Remove all pools in a forked child: the leases belong to its parent."""
    global _pools_lock  # noqa: PLW0603 - the parent may have held it while forking
    _pools_lock = threading.Lock()
    _pools.clear()


after_fork_in_child(_forget_pools)
