"""Reservations: places in a pool for leases that are being acquired or released."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agentgym_gym._leasing.lease import LeaseIssuer

__all__ = ["Reservation"]

_numbers = itertools.count()


class Reservation:
    """A place in a pool, until `release`.

    An interrupt may come before the ``finally`` that releases a place is reached. So a reservation that is
    garbage-collected is released, too.

    Args:
        pool: The pool.
        taken: The numbers of the reservations of the pool, to which this one is added.

    Attributes:
        pool: The pool.
    """

    _number = -1  # if an interrupt ends `__init__`

    def __init__(self, pool: LeaseIssuer, taken: set[int]) -> None:
        self._taken = taken
        self.pool = pool
        self._number = next(_numbers)
        taken.add(self._number)

    def release(self) -> None:
        """Give the place back, and offer it to waiting callers. May be called again."""
        if self._number in self._taken:
            self._taken.discard(self._number)
            self.pool.offer()

    def __del__(self) -> None:
        if self._number >= 0:
            self.release()
