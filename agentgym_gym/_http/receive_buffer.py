"""The buffer into which the connections of an event loop receive data, one connection at a time.

asyncio receives into a buffer of its protocol and reports the size afterwards. A Ctrl-C in between loses the
size, and not the data: the rest of the buffer is zero, and the replies of this protocol are text. So the
connection can still pass them to the thread that reads the rest of the reply (see `abandoned`).
"""

from __future__ import annotations

import asyncio
import weakref
from typing import Protocol

__all__ = ["ReceiveBuffer", "buffer_of"]

_SIZE = 65_536  # bytes per read


class _Borrower(Protocol):
    """A connection."""

    def keep(self, data: bytes) -> None:
        """Keep the data of an interrupted read for a thread that reads the rest of the reply."""


class ReceiveBuffer:
    """A buffer that contains zeros, except from `lend` to `clear`."""

    def __init__(self) -> None:
        self._view = memoryview(bytearray(_SIZE))
        self._borrower: _Borrower | None = None

    def lend(self, borrower: _Borrower) -> memoryview:
        """Return the buffer for the next read of a connection.

        Args:
            borrower: The connection.
        """
        before = self._borrower
        if before is not None:  # its read was interrupted, and the event loop still runs
            before.keep(self.interrupted(before))
            self.clear(_SIZE)
        self._borrower = borrower
        return self._view

    def received(self, size: int) -> bytes:
        """Return the data of the read.

        Args:
            size: Their size in bytes.
        """
        return bytes(self._view[:size])

    def clear(self, size: int) -> None:
        """End the loan.

        Args:
            size: Number of bytes that are not zero.
        """
        self._view[:size] = bytes(size)
        self._borrower = None

    def interrupted(self, borrower: _Borrower) -> bytes:
        """Return the data of a connection's interrupted read, whose size is unknown; empty if there are none.

        Args:
            borrower: The connection.
        """
        return bytes(self._view).rstrip(b"\0") if self._borrower is borrower else b""


_of_loop: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, ReceiveBuffer] = weakref.WeakKeyDictionary()


def buffer_of(loop: asyncio.AbstractEventLoop) -> ReceiveBuffer:
    """Return the buffer of an event loop."""
    buffer = _of_loop.get(loop)
    if buffer is None:
        buffer = _of_loop[loop] = ReceiveBuffer()
    return buffer
