"""Ports for servers that a test starts by number."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterator

__all__ = ["reserved_ports"]


@contextlib.contextmanager
def reserved_ports(number: int) -> Iterator[list[int]]:
    """Reserve ports of 127.0.0.1: the system assigns them to no other program, but a server can use them.

    Linux lets sockets with SO_REUSEADDR, which servers set, share a port while at most one of them listens.
    """
    with contextlib.ExitStack() as stack:
        reserved = [stack.enter_context(socket.socket()) for _ in range(number)]
        for each in reserved:
            each.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            each.bind(("127.0.0.1", 0))
        yield [each.getsockname()[1] for each in reserved]
