"""Reservations: places in a pool for leases that are being acquired or released."""

from __future__ import annotations

import itertools
from typing import Protocol

__all__ = ["PlaceIssuer", "Reservation"]

_numbers = itertools.count()


class PlaceIssuer(Protocol):
    """The interface of `LeasePool` that reservations need."""

    server: str

    def offer(self) -> None:
        """Assign free places to waiting callers."""


class Reservation:
    """A place in a pool, from `take` until `release`.

    Its holder records it before it is taken, and releases it in the end. An interrupt may come before any
    ``finally`` is reached, and the exception then keeps the local variables of the interrupted functions.
    So a place that only a local variable has could remain taken.

    Args:
        pool: The pool.
        taken: The numbers of the reservations of the pool, to which this one is added.

    Attributes:
        pool: The pool.
    """

    def __init__(self, pool: PlaceIssuer, taken: set[int]) -> None:
        self.pool = pool
        self._taken = taken
        self._number = next(_numbers)

    def take(self) -> None:
        """Take the place."""
        self._taken.add(self._number)

    def release(self) -> None:
        """Give the place back, and offer it to waiting callers. May be called again."""
        if self._number in self._taken:
            self._taken.discard(self._number)
            self.pool.offer()

    def __del__(self) -> None:
        if hasattr(self, "_number"):  # an interrupt may have ended `__init__`
            self.release()
