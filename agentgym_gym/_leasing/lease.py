"""The right to use one remote environment, and who has it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from agentgym_gym import _lifecycle
from agentgym_gym._leasing.recognition import Gateway, Memory
from agentgym_gym._text import redact
from agentgym_gym.errors import LeaseLost

if TYPE_CHECKING:
    from collections.abc import Callable

    from agentgym_gym._http.limits import Stats
    from agentgym_gym._leasing.circuit_breaker import CircuitBreaker
    from agentgym_gym._leasing.slots import Slot
    from agentgym_gym.calls import WaitingFlow
    from agentgym_gym.catalogue import Environment
    from agentgym_gym.errors import Fault
    from agentgym_gym.wire import Wire

__all__ = ["Holder", "Lease", "Pool"]


class Pool(Protocol):
    """A `LeasePool`, as those who have a lease of it see it."""

    environment: Environment
    server: str
    breaker: CircuitBreaker
    gateway: Gateway
    epoch: int

    def park(self, lease: Lease) -> None:
        """Note that the episode in a lease is over."""

    def resume(self, lease: Lease) -> bool:
        """Note that another episode begins in a lease; return whether its holder still has it."""

    def release(self, lease: Lease, stats: Stats | None = None) -> WaitingFlow[bool]:
        """Release a remote environment."""

    def forget(self, lease: Lease) -> WaitingFlow[None]:
        """Note that an environment is not the one that a lease was on."""

    def note_answered(self, lease: Lease) -> None:
        """Note that no request runs any more in an environment."""

    def note_reply(self) -> None:
        """Note that the server answered a call."""

    def note_fault(self, fault: Fault) -> WaitingFlow[None]:
        """Note how a call failed."""


class Lease:
    """The right to use one remote environment.

    Attributes:
        pool: The pool it came from.
        env_id: The id on the server.
        fresh: Whether the environment was made for this lease and has not been played.
        maybe_busy: Whether a request may still be running in the remote environment.
        answered: Whether the server has answered that request since, when nobody waited for it any more.
        unusable: Whether the remote environment could not be reset, and is not reused.
        idle: Whether the episode in it is over, so that the lease may go to someone who waits for one.
        slot: Its slot, on a server with a fixed capacity.
        released: Whether it was released, and must not be used any more.
        unclosed: Whether it was released, and nobody knows whether the server closed its environment.
        memory: What is known of the remote environment.
    """

    def __init__(
        self,
        pool: Pool,
        env_id: int,
        *,
        epoch: int,
        fresh: bool,
        slot: Slot | None = None,
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
        self.memory = memory or Memory()
        self._epoch = epoch
        self._process = _lifecycle.ProcessId()
        self._revoked = False

    @property
    def server(self) -> str:
        """Base URL of the server."""
        return self.pool.server

    @property
    def current(self) -> bool:
        """Whether the remote environment may still exist: the server did not go away since."""
        return self.ours and not self._revoked and self._epoch == self.pool.epoch

    @property
    def ours(self) -> bool:
        """Whether this process took the lease; a forked child inherits the object, but not the right."""
        return self._process.current

    @property
    def wire(self) -> Wire:
        """The wire of the server."""
        return self.pool.environment.wire

    @property
    def gateway(self) -> Gateway:
        """What is known of a gateway before the server."""
        return self.pool.gateway

    def revoke(self) -> None:
        """Note that the id belongs to another lease now, or may be somebody else's."""
        self._revoked = True

    def forget(self) -> WaitingFlow[None]:
        """Note that the id is somebody else's: not ours to close, also not when this process has died."""
        yield from self.pool.forget(self)

    def check(self) -> None:
        """Raise unless the remote environment may be used.

        Raises:
            LeaseLost: It belongs to another process, or the server gave its id to someone else.
        """
        if not self.ours:
            raise LeaseLost("this environment was made in another process; make one in each process")
        if not self.current:
            raise LeaseLost(f"{redact(self.server)} was restarted and lost remote environment {self.env_id}")

    def __repr__(self) -> str:
        return f"Lease({redact(self.server)!r}, {self.env_id})"


class Holder:
    """Who leases are made for: an episode, which releases them.

    A lease is noted here before anything else can happen to it, so that none is lost to an interrupt.

    Attributes:
        leases: Those that were not released, or whose environment may still be open.
        run: Runs a flow in the calling thread, which is not the holder's; None where it cannot.
    """

    def __init__(self, run: Callable[[WaitingFlow[bool]], object] | None = None) -> None:
        self.leases: list[Lease] = []
        self.run = run

    @property
    def server(self) -> str:
        """Base URL of the server of one of the leases; empty where there are none."""
        return next((lease.server for lease in list(self.leases)), "")

    def owes(self, *, again: bool) -> list[Lease]:
        """Return the leases that are to be released, those first that were not yet.

        Args:
            again: Whether to try again to close what may still be open.
        """
        for lease in list(self.leases):
            if lease.released and not (lease.unclosed and lease.current):
                self.leases.remove(lease)
        owed = [lease for lease in list(self.leases) if again or not lease.released]
        return sorted(owed, key=lambda lease: lease.released)
