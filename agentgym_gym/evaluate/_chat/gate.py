"""Few requests are sent at a time, so that many that begin together do not all wait for each other."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from weakref import WeakKeyDictionary

__all__ = ["SENT", "enter", "nothing"]

SENT = frozenset({"connection.connect_tcp.started", "http11.send_request_body.complete"})
"""The events of httpx's extension ``trace`` at which the next request may begin: this one is sent, or waits
for the network."""

_AT_ONCE = 16
_SENDING_SECONDS = 1.0

_gates: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Semaphore] = WeakKeyDictionary()


def nothing() -> None:
    """Do nothing."""


async def enter() -> Callable[[], None]:
    """Wait until few enough requests of this event loop are being sent.

    Sending takes many rounds of the event loop. Of a thousand requests that begin together, all would be sent
    at the end of the time that they take together, be answered together, and go on so. In a line,
    each is sent after its own share of that time, and the replies come as far apart.

    Returns:
        What is called when the request is sent, and may be called again. After a second it is taken for sent.
    """
    loop = asyncio.get_running_loop()
    gate = _gates.setdefault(loop, asyncio.Semaphore(_AT_ONCE))
    await gate.acquire()
    left = False

    def leave() -> None:
        nonlocal left
        if not left:
            left = True
            timer.cancel()
            gate.release()

    timer = loop.call_later(_SENDING_SECONDS, leave)
    return leave
