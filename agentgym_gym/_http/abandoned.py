"""Replies that come when nobody waits for them any more are read in another thread.

After a time limit or an interrupt the server may still be at work. Its reply to ``/create`` has the only
mention of an id that must be closed, and its reply to a step tells that the environment is free again. So the
connection of such a call, one with `Call.late`, is not closed at once: a thread reads on where the parser is.
"""

from __future__ import annotations

import contextlib
import threading
import time
from typing import TYPE_CHECKING

from agentgym_gym._http import connection_ids
from agentgym_gym._lifecycle import after_fork_in_child
from agentgym_gym.errors import Fault

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable

    from agentgym_gym._http.http11 import ResponseParser
    from agentgym_gym.calls import Call, Reply

__all__ = ["LATE_SECONDS", "drain", "listen", "tell"]

LATE_SECONDS = 300.0
"""How long a late reply is waited for, in seconds."""

_MOST = 64  # threads; what comes beyond is closed at once
_CHUNK = 65_536  # bytes read at once

_listening: dict[threading.Thread, Call] = {}


def listen(connected: socket.socket, parser: ResponseParser, call: Call, number: int) -> bool:
    """Read the rest of a reply in another thread, and hand it to the call's ``late``.

    Args:
        connected: The socket, which is closed in the end.
        parser: What has read the beginning of the reply.
        call: The call, which has ``late``.
        number: The number of the connection.

    Returns:
        Whether that is done; else there are too many already, and the socket is still the caller's.
    """
    return _start(call, lambda: _read(connected, parser, number))


def tell(reply: Reply) -> None:
    """Hand a reply that was read in time, and of which the flow was not told, to its call's ``late``."""
    if reply.call.late is not None:
        witness = connection_ids.keep(reply.call.server, reply.connection)  # the connection may be closed now
        _start(reply.call, lambda: _call_late(reply, witness))


def drain(seconds: float) -> None:
    """Wait for the replies to ``/create``, and for what is done with them.

    Args:
        seconds: How long at most.
    """
    deadline = time.monotonic() + seconds
    for thread, call in list(_listening.items()):
        if call.stage == "create":
            thread.join(max(0.0, deadline - time.monotonic()))


def _start(call: Call, work: Callable[[], None]) -> bool:
    if len(_listening) >= _MOST:
        return False

    def run() -> None:
        try:
            work()
        finally:
            _listening.pop(thread, None)

    thread = threading.Thread(target=run, name="agentgym-late", daemon=True)
    _listening[thread] = call
    try:
        thread.start()
    except RuntimeError:  # there are too many, or the program ends
        _listening.pop(thread, None)
        return False
    return True


def _read(connected: socket.socket, parser: ResponseParser, number: int) -> None:
    deadline = time.monotonic() + LATE_SECONDS
    with contextlib.suppress(OSError, Fault):
        with connected:
            witness = connection_ids.copy_of(parser.call.server, number, connected.fileno())
            while not parser.complete:
                connected.settimeout(max(0.001, deadline - time.monotonic()))
                data = connected.recv(_CHUNK)
                if data:
                    parser.feed(data)
                else:
                    parser.end()
                    break
        if parser.complete:
            _call_late(parser.reply(number), witness)


def _call_late(reply: Reply, _witness: connection_ids.Witness | None) -> None:
    """Hand over a reply, while it can be proved that the server which gave it lives."""
    if reply.call.late is not None:
        reply.call.late(reply)


after_fork_in_child(_listening.clear)
