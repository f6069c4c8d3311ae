"""The right to use one remote environment, and a turn to get one."""

from __future__ import annotations

import os
from concurrent.futures import Future
from typing import TYPE_CHECKING, NamedTuple

from agentgym_gym._text import redact
from agentgym_gym.errors import LeaseLost

if TYPE_CHECKING:
    from agentgym_gym._leasing.capacity import Slot
    from agentgym_gym._leasing.pool import LeasePool

__all__ = ["Lease", "Waiter"]


class Lease:
    """The right to use one remote environment.

    Attributes:
        pool: The pool it came from.
        env_id: The id on the server.
        fresh: Whether the environment was made for this lease and has not been played.
        maybe_busy: Whether a request may still be running in the remote environment.
        unusable: Whether the remote environment could not be reset, and so is of no use to anyone.
        idle: Whether the episode in it is over, so that it may be handed on to whoever waits for one.
        slot: The place it takes on a server that has only so many.
    """

    def __init__(
        self, pool: LeasePool, env_id: int, *, epoch: int, fresh: bool, slot: Slot | None = None
    ) -> None:
        self.pool = pool
        self.slot = slot
        self.env_id = env_id
        self.fresh = fresh
        self.maybe_busy = False
        self.unusable = False
        self.idle = False
        self._epoch = epoch
        self._pid = os.getpid()
        self._taken = False

    @property
    def server(self) -> str:
        """Base URL of the server."""
        return self.pool.server

    @property
    def current(self) -> bool:
        """Whether the remote environment can still be there: the server was not seen to go away since."""
        return self.ours and not self._taken and self._epoch == self.pool.epoch

    @property
    def ours(self) -> bool:
        """Whether this process took the lease; a forked child inherits the object, not the right."""
        return self._pid == os.getpid()

    def revoke(self) -> None:
        """Note that the server gave the id to someone else, having lost what was there."""
        self._taken = True

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


class Waiter(NamedTuple):
    """Somebody's turn to get a place, in one pool or another.

    Attributes:
        most: How many environments the pool may hold, this one included.
        place: To be resolved with the pool that has reserved a place, or with a lease that was handed on;
            cancelled when none is wanted any more.
    """

    most: int
    place: Future[LeasePool | Lease]
