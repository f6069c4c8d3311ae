"""Which remote environments are ours.

A server gives out ids and forgets to take them back, hands out ids that are in use, or is restarted and
begins again at 0. A :class:`LeasePool` keeps, for one server and all threads of this process, which ids we
hold and which we may use again, so that no two episodes ever share one.
"""

from __future__ import annotations

import logging
import math
import os
import threading
import time
from collections import deque
from concurrent.futures import InvalidStateError
from typing import TYPE_CHECKING, Any

from agentgym_gym._leasing.capacity import Slot, Slots
from agentgym_gym._leasing.circuit_breaker import CircuitBreaker
from agentgym_gym._leasing.held import Journal
from agentgym_gym._leasing.lease import Lease, Waiter
from agentgym_gym._logging import log
from agentgym_gym._text import redact
from agentgym_gym.calls import Flow, at
from agentgym_gym.errors import (
    Fault,
    ServerFull,
    ServerUnreachable,
    WrongServer,
)

if TYPE_CHECKING:
    from agentgym_gym._http.limits import Stats
    from agentgym_gym.catalogue import Environment

__all__ = ["QUARANTINE_SECONDS", "LeasePool", "pool_of"]

QUARANTINE_SECONDS = 300.0
"""How long an id is left alone in which a request may still be running, where it cannot be closed."""


class LeasePool:
    """All leases of this process on one server.

    Args:
        environment: The environment it serves.
        server: Its base URL.

    Attributes:
        breaker: What is known of the server.
        epoch: How often the server was seen to be away.
        waiting: Who waits for a place, first come first.
    """

    def __init__(self, environment: Environment, server: str) -> None:
        self.environment = environment
        self.server = server
        self.breaker = CircuitBreaker(server)
        self.epoch = 0
        self.waiting: dict[Waiter, None] = {}
        self._held: dict[int, Lease] = {}
        self._free: list[int] = []
        self._quarantine: deque[tuple[float, Lease]] = deque()
        capacity = environment.wire.capacity
        self._slots = None if capacity is None else Slots(server, capacity)
        self._journal = Journal(environment.name, server) if environment.wire.closes else None
        self._pending = 0
        self._identified = False
        # Reentrant, because the garbage collector may run in the midst of it and give a lease back.
        self._lock = threading.RLock()

    @property
    def load(self) -> int:
        """How many leases are held, on their way, or on their way back."""
        with self._lock:
            return len(self._held) + self._pending

    @property
    def quarantine_left(self) -> float:
        """Seconds until an id in quarantine may be used again; infinite where none is."""
        with self._lock:
            return max(0.0, self._quarantine[0][0] - time.monotonic()) if self._quarantine else math.inf

    def reserve(self, most: int | None = None) -> bool:
        """Reserve a place for `acquire`, which from now on counts as held.

        Args:
            most: How many environments this process may hold, in quarantine included; None for no limit.

        Returns:
            Whether there was room.
        """
        with self._lock:
            self._wake()
            if most is not None and self.load + len(self._quarantine) >= most:
                return False
            self._pending += 1
            return True

    def unreserve(self) -> None:
        """Give up a place that was reserved."""
        with self._lock:
            self._pending -= 1
            self.offer()

    def offer(self) -> None:
        """Hand out the places that are free to those who wait for one."""
        with self._lock:
            refused = 0
            for turn in list(self.waiting):
                if turn.most <= refused or turn.place.done():
                    continue
                place = self if self.reserve(turn.most) else self.take_over()
                if place is None:
                    refused = turn.most
                    continue
                try:
                    turn.place.set_result(place)
                except InvalidStateError:  # another server was faster, or nobody waits any more
                    if isinstance(place, Lease):
                        place.idle = True
                    else:
                        self._pending -= 1

    def park(self, lease: Lease) -> None:
        """Note that the episode in a lease is over: until the next begins, it goes to whoever waits."""
        with self._lock:
            lease.idle = True
            self.offer()

    def resume(self, lease: Lease) -> bool:
        """Note that another episode begins in a lease; return whether it is still its holder's."""
        with self._lock:
            lease.idle = False
            return lease.current

    def take_over(self) -> Lease | None:
        """Take an idle lease from its holder, who needs none before the next reset."""
        with self._lock:
            lease = next((each for each in self._held.values() if each.idle and each.current), None)
            if lease is None:
                return None
            heir = self._enter(lease.env_id, fresh=False, slot=lease.slot)
            lease.revoke()
            lease.slot = None
            return heir

    def acquire(self, task_id: int, *, fresh: bool = False, reserved: bool = False) -> Flow[Lease]:
        """Take a remote environment: a free one of ours, else a new one.

        Args:
            task_id: The task that will be played first.
            fresh: Whether only a new one will do.
            reserved: Whether a place was reserved for it.

        Raises:
            WrongServer: Another environment answers at the address.
            ServerFull: The server has no environment for us.
            ServerUnreachable: It could not be reached, or is left alone for a while.
            Fault: The server did not do its part.
        """
        if not reserved:
            self.reserve()
        try:
            self.breaker.check()
            return (yield from self._take(task_id, fresh=fresh))
        finally:
            self.unreserve()  # what was taken counts by itself

    def _take(self, task_id: int, *, fresh: bool) -> Flow[Lease]:
        try:
            yield from self._identify()
            slot = self._take_slot()
            try:
                return (yield from self._fill(slot, task_id, fresh=fresh))
            except BaseException:
                _give_back(slot)
                raise
        except Fault as fault:
            if not isinstance(fault, ServerFull):
                self.breaker.deprioritize()
            self.note(fault)
            raise

    def _fill(self, slot: Slot | None, task_id: int, *, fresh: bool) -> Flow[Lease]:
        """Return a lease on a free environment, on the one last played in the slot, or on a new one."""
        reused = None if fresh else self._reuse(slot)
        if reused is not None:
            return reused
        listed: tuple[int, ...] | None = None
        if slot is not None:
            listed = yield from at(self.server, self.environment.wire.list_envs())
        if slot is not None and listed is not None:
            left = slot.env_id
            if left in listed and left not in self._held and not fresh:
                return self._enter(left, fresh=False, slot=slot)
            self._check_room(len(listed))
        env_id = yield from at(self.server, self.environment.wire.create(task_id))
        if env_id in (listed or ()):
            raise self._full(env_id)
        lease = self._hold(env_id, slot)
        if slot is not None:
            slot.remember(None if listed is None else env_id)
        return lease

    def _take_slot(self) -> Slot | None:
        if self._slots is None:
            return None
        self._wake()
        slot = self._slots.take()
        if slot is None:
            raise ServerFull(
                f"{redact(self.server)} holds at most {self._slots.capacity} {self.environment.name} "
                "environments, and the processes of this machine use them all; close some, or spread over "
                "more servers with server=[URL, URL, ...]"
            )
        return slot

    def _check_room(self, there: int) -> None:
        if self._slots is not None and there >= self._slots.capacity:
            raise ServerFull(
                f"{redact(self.server)} holds {there} {self.environment.name} environments that others made, "
                "and has no room left; use another server, or restart this one"
            )

    def release(self, lease: Lease, stats: Stats | None = None) -> Flow[bool]:
        """Give a remote environment back: close it where the server can, else keep its id for later.

        Never raises a fault: there is nobody left to whom it would matter.

        Args:
            lease: The lease; must not be used afterwards.
            stats: Where a fault is counted.

        Returns:
            Whether the server did its part, if it had one.
        """
        with self._lock:
            current = self.resume(lease)
            if self._held.get(lease.env_id) is lease:
                del self._held[lease.env_id]
            self._pending += 1  # until it is closed it takes up room on the server
        self._tell("lease given back", lease.env_id, current=current)
        try:
            if current and lease.maybe_busy and not self.environment.wire.closes:
                with self._lock:  # and the slot with it
                    self._quarantine.append((time.monotonic() + QUARANTINE_SECONDS, lease))
                return True
            return (yield from self._hand_in(lease, stats, current=current))
        finally:
            self.unreserve()

    def _hand_in(self, lease: Lease, stats: Stats | None, *, current: bool) -> Flow[bool]:
        try:
            if not current:
                return True  # the id may be someone else's by now
            if not self.environment.wire.closes:
                self._keep(lease)
                return True
            yield from at(self.server, self.environment.wire.close(lease.env_id))
        except Fault as error:
            if stats is not None:
                stats.fault(error, server=self.server, stage="close")
            self._tell("lease not closed", lease.env_id, message=str(error))
            return False
        else:
            if self._journal is not None:
                self._journal.discard(lease.env_id)
            return True
        finally:
            if lease.ours:
                _give_back(lease.slot)

    def note(self, fault: Fault | None) -> None:
        """Take note of how a call ended: where no server was, what we held may be gone, or another's."""
        self.breaker.note(fault)
        if not (isinstance(fault, ServerUnreachable) and fault.refused):
            return
        with self._lock:
            lost = [lease.env_id for lease in self._held.values() if lease.current]
            self.epoch += 1
            self._identified = False
            self._free.clear()
            self._held.clear()  # nobody can play in them any more, and they take up no room
            for _, lease in self._quarantine:
                _give_back(lease.slot)
            self._quarantine.clear()
            if self._journal is not None:
                self._journal.clear()
            self.offer()
        for env_id in lost:
            self._tell("lease lost", env_id)

    def _identify(self) -> Flow[None]:
        if self._identified:
            return
        try:
            yield from at(self.server, self.environment.wire.identify())
        except WrongServer as error:
            raise WrongServer(
                f"{redact(self.server)} does not serve {self.environment.name}: {error}. Check the argument "
                f"server= and the variable {self.environment.variable}; `agentgym doctor URL` tells what "
                "answers at a URL."
            ) from None
        self._identified = True

    def _wake(self) -> None:
        """Take the ids that have rested long enough among the free ones."""
        with self._lock:
            while self._quarantine and self._quarantine[0][0] <= time.monotonic():
                _, lease = self._quarantine.popleft()
                self._keep(lease)
                _give_back(lease.slot)

    def _keep(self, lease: Lease) -> None:
        """Keep an environment that cannot be closed for later, in its slot if that is how it is found."""
        in_slot = lease.slot is not None and lease.slot.env_id == lease.env_id
        if lease.unusable and lease.slot is not None:
            lease.slot.remember(None)
        elif not lease.unusable and not in_slot:
            with self._lock:
                self._free.append(lease.env_id)

    def _reuse(self, slot: Slot | None) -> Lease | None:
        """Return a lease on a free id, if there is one."""
        self._wake()
        with self._lock:
            return self._enter(self._free.pop(), fresh=False, slot=slot) if self._free else None

    def _hold(self, env_id: int, slot: Slot | None) -> Lease:
        """Enter an id that the server has just given out."""
        with self._lock:
            holder = self._held.get(env_id)
            if holder is not None:
                if self.environment.wire.reissues_ids and holder.current:
                    raise self._full(env_id)
                holder.revoke()  # such ids begin again only when the server does
                self._tell("lease lost", env_id)
            if env_id in self._free:
                self._free.remove(env_id)
            self._quarantine = deque(entry for entry in self._quarantine if entry[1].env_id != env_id)
            if self._journal is not None:
                self._journal.add(env_id)
            return self._enter(env_id, fresh=True, slot=slot)

    def _full(self, env_id: int) -> ServerFull:
        return ServerFull(
            f"{redact(self.server)} gave out id {env_id}, which is in use: it is full. Close some "
            "environments, or use more servers"
        )

    def _enter(self, env_id: int, *, fresh: bool, slot: Slot | None) -> Lease:
        lease = self._held[env_id] = Lease(self, env_id, epoch=self.epoch, fresh=fresh, slot=slot)
        self._tell("lease made", env_id, fresh=fresh)
        return lease

    def _tell(self, event: str, env_id: int, **facts: Any) -> None:
        log(logging.DEBUG, event, server=redact(self.server), env_id=env_id, **facts)


def _give_back(slot: Slot | None) -> None:
    if slot is not None:
        slot.release()


_pools: dict[tuple[int, str], LeasePool] = {}
_pools_lock = threading.Lock()


def pool_of(environment: Environment, server: str) -> LeasePool:
    """Return this process's one pool for a server."""
    with _pools_lock:
        key = (id(environment), server)  # the pool keeps the environment alive, so the id stays its own
        if key not in _pools:
            _pools[key] = LeasePool(environment, server)
        return _pools[key]


def _forget_pools() -> None:
    """Start a forked child with nothing held: what it inherits belongs to its parent."""
    global _pools_lock  # noqa: PLW0603 - the parent may have held it while forking
    _pools_lock = threading.Lock()
    _pools.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_pools)
