"""Look-up and racing connection attempts in an event loop, as `sockets` does them in a thread."""

from __future__ import annotations

import asyncio
import socket
from typing import Any, TypeAlias

from agentgym_gym._http.sockets import ATTEMPT_DELAY, combine_errors, interleave, is_address

__all__ = ["Address", "look_up", "race"]

Address: TypeAlias = tuple[Any, ...]
"""An address as `socket.getaddrinfo` returns it."""


async def look_up(host: str, port: int) -> list[Address]:
    """Return the addresses of a host.

    Raises:
        OSError: It has none.
    """
    if is_address(host):  # `getaddrinfo` would read files for it, in this thread
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        return [(family, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", (host, port))]
    return await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)


async def race(addresses: list[Address]) -> socket.socket:
    """Connect to the first address that answers, starting one attempt every `ATTEMPT_DELAY` seconds.

    asyncio has such a race, but leaks the sockets of a cancelled one.
    """
    waiting, errors = list(interleave(addresses)), list[OSError]()
    running: set[asyncio.Task[socket.socket]] = set()
    try:
        while waiting or running:
            if waiting:
                running.add(asyncio.ensure_future(_attempt(*waiting.pop(0))))
            delay = ATTEMPT_DELAY if waiting else None
            ended, _ = await asyncio.wait(running, timeout=delay, return_when=asyncio.FIRST_COMPLETED)
            for each in ended:
                running.discard(each)
                error = each.exception()
                if error is None:
                    return each.result()
                if not isinstance(error, OSError):
                    raise error
                errors.append(error)
        raise combine_errors(errors)
    finally:
        for each in running:
            each.cancel()
            each.add_done_callback(_close_late)


async def _attempt(family: int, kind: int, protocol: int, _name: str, address: Any) -> socket.socket:
    attempt = socket.socket(family, kind, protocol)
    try:
        attempt.setblocking(False)
        await asyncio.get_running_loop().sock_connect(attempt, address)
    except BaseException:
        attempt.close()
        raise
    return attempt


def _close_late(attempt: asyncio.Task[socket.socket]) -> None:
    if not attempt.cancelled() and attempt.exception() is None:
        attempt.result().close()
