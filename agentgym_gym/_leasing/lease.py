"""Leases, the rights to use remote environments, and their holders."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from agentgym_gym import _lifecycle
from agentgym_gym._leasing.recognition import Gateway, Memory
from agentgym_gym._leasing.reservation import PlaceIssuer, Reservation
from agentgym_gym._text import redact
from agentgym_gym.errors import LeaseLost

if TYPE_CHECKING:
    from collections.abc import Callable

    from agentgym_gym._http.limits import Stats
    from agentgym_gym._leasing.circuit_breaker import CircuitBreaker
    from agentgym_gym._leasing.slots import SlotLock
    from agentgym_gym.calls import ServerConnection, WaitingFlow
    from agentgym_gym.catalogue import Environment
    from agentgym_gym.errors import Fault
    from agentgym_gym.wire import Wire

__all__ = ["Holder", "Lease", "LeaseIssuer"]


class LeaseIssuer(Protocol):
    """The interface of `LeasePool` that leases and their users need."""

    environment: Environment
    server: str
    breaker: CircuitBreaker
    gateway: Gateway
    epoch: int

    def offer(self) -> None:
        """Assign free places to waiting callers."""

    def park(self, lease: Lease) -> None:
        """Mark a lease as idle: its episode is over."""

    def resume(self, lease: Lease) -> bool:
        """Mark a lease as in use for another episode; return whether its holder still has it."""

    def release(self, lease: Lease, stats: Stats | None = None) -> WaitingFlow[bool]:
        """Release a remote environment."""

    def forget(self, lease: Lease) -> WaitingFlow[None]:
        """Give up a lease whose id belongs to another environment."""

    def open_connection(self, before: float) -> ServerConnection | None:
        """Return an open connection of a lease that was opened before another one."""

    def note_answered(self, lease: Lease) -> None:
        """Record that no request runs in an environment any more."""

    def note_reply(self, latency: float | None = None) -> None:
        """Record that the server answered a call, and the seconds that a step took."""

    def note_fault(self, fault: Fault) -> WaitingFlow[None]:
        """Record the fault of a failed call."""


class Lease:
    """The right to use one remote environment.

    Attributes:
        pool: The pool that it belongs to.
        env_id: The id on the server.
        fresh: Whether the environment was created for this lease and has not been used.
        maybe_busy: Whether a request may still be running in the remote environment.
        answered: Whether the server has answered that request since, after it was abandoned.
        unusable: Whether a reset of the remote environment failed, so that it is not reused.
        idle: Whether its episode is over, so that the lease may pass to a waiting caller.
        slot: Its slot, on a server with a fixed capacity.
        released: Whether it was released, and must not be used any more.
        unclosed: Whether it was released, but the server may not have closed its environment.
        place: Its place in the pool while its slot is being released; None before.
        memory: The last known state of the remote environment.
    """

    def __init__(
        self,
        pool: LeaseIssuer,
        env_id: int,
        *,
        epoch: int,
        fresh: bool,
        slot: SlotLock | None = None,
        memory: Memory | None = None,
    ) -> None:
        self.pool = pool
        self.slot = slot
        self.env_id = env_id
        self.fresh = fresh
        self.maybe_busy = False
        self.answered = False
        self.unusable = False
        self.idle = False
        self.released = False
        self.unclosed = False
        self.place: Reservation | None = None
        self.memory = memory or Memory()
        self._epoch = epoch
        self._process = _lifecycle.ProcessId()
        self._revoked = ""

    @property
    def server(self) -> str:
        """Base URL of the server."""
        return self.pool.server

    @property
    def current(self) -> bool:
        """Whether the remote environment may still exist: the server was not seen down since."""
        return self.ours and not self._revoked and self._epoch == self.pool.epoch

    @property
    def ours(self) -> bool:
        """Whether this process took the lease; a forked child inherits the object, but not the lease."""
        return self._process.current

    @property
    def wire(self) -> Wire:
        """The protocol of the server."""
        return self.pool.environment.wire

    @property
    def gateway(self) -> Gateway:
        """The state of a gateway in front of the server."""
        return self.pool.gateway

    def older_connection(self) -> ServerConnection | None:
        """Return an open connection of another environment that is older than that of the last reply."""
        connection = self.memory.connection
        return None if connection is None else self.pool.open_connection(connection.opened)

    def revoke(self, reason: str) -> None:
        """Invalidate this lease: its id belongs to another lease now, or may belong to another client.

        Args:
            reason: The end of the error message of a later use, which begins with the server's URL.
        """
        self._revoked = self._revoked or reason

    def forget(self) -> WaitingFlow[None]:
        """Invalidate this lease and remove its record: the id belongs to another client."""
        yield from self.pool.forget(self)

    def check(self) -> None:
        """Raise unless the remote environment may be used.

        Raises:
            LeaseLost: The lease belongs to another process, the server was down since, or it gave the id to
                another client.
        """
        if not self.ours:
            raise LeaseLost("this environment was made in another process; make one in each process")
        if not self.current:
            down = (
                f"went down (it refused a connection), and remote environment {self.env_id} was lost with it"
            )
            raise LeaseLost(f"{redact(self.server)} {self._revoked or down}")

    def __repr__(self) -> str:
        return f"Lease({redact(self.server)!r}, {self.env_id})"


class Holder:
    """The holder of leases: an episode, which releases them.

    A new lease is recorded here before any other operation, so that an interrupt cannot lose it.

    Attributes:
        leases: Leases that were not released, or whose environment may still be open.
        places: Reservations for leases that are being acquired or released.
        run: Runs a flow in the calling thread, which is not the holder's; None if it cannot.
    """

    def __init__(self, run: Callable[[WaitingFlow[bool]], object] | None = None) -> None:
        self.leases: list[Lease] = []
        self.places: list[Reservation] = []
        self.run = run

    @property
    def server(self) -> str:
        """Base URL of the server of one of the leases; empty if there are none."""
        return next((lease.server for lease in list(self.leases)), "")

    def reserve(self, pool: PlaceIssuer, taken: set[int]) -> Reservation:
        """Return a new reservation in a pool, which has recorded it under `taken`. Callable in any thread."""
        place = Reservation(pool, taken)
        self.places.append(place)
        place.take()
        return place

    def release_places(self) -> None:
        """Release all places, also those of a flow that was interrupted."""
        for place in list(self.places):
            place.release()
            self.places.remove(place)

    def pending_releases(self, *, retry: bool) -> list[Lease]:
        """Return the leases to release, starting with those that were not released before.

        Args:
            retry: Whether to include leases whose environment may still be open.
        """
        self.release_places()
        for lease in list(self.leases):
            if lease.place is not None:
                lease.place.release()
            if lease.released and not (lease.unclosed and lease.current):
                self.leases.remove(lease)
        pending = [lease for lease in list(self.leases) if retry or not lease.released]
        return sorted(pending, key=lambda lease: lease.released)
