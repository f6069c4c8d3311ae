"""Abandoned requests: a thread reads the replies that the caller no longer waits for.

After a timeout or an interrupt the server may still be working on the request. Only its reply to ``/create``
contains the id of the new environment, which must be closed, and its reply to a step shows that the
environment is free again. So the connection of an abandoned call with `Call.late` stays open: a thread
continues to read from where the parser stopped.
"""

from __future__ import annotations

import contextlib
import threading
import time
from typing import TYPE_CHECKING

from agentgym_gym._http.sockets import Link
from agentgym_gym._lifecycle import after_fork_in_child
from agentgym_gym.errors import Fault

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable

    from agentgym_gym._http.http11 import ResponseParser
    from agentgym_gym.calls import Call, Reply

__all__ = ["LATE_SECONDS", "drain", "listen", "pass_on", "unanswered"]

LATE_SECONDS = 300.0
"""Timeout for a late reply, in seconds."""

_MOST = 64  # threads; further replies are not read, and their connections are closed
_CHUNK = 65_536  # bytes per read

_listening: dict[threading.Thread, Call] = {}


def listen(connected: socket.socket, parser: ResponseParser, call: Call) -> bool:
    """Read the rest of a reply in another thread, and pass it to the call's ``late``.

    Args:
        connected: The socket; the thread closes it when it is done.
        parser: The parser that has read the reply so far.
        call: The call, which has ``late``.

    Returns:
        True if a thread was started. False if too many are running; the caller still owns the socket.
    """
    return _start(call, lambda: _read(connected, parser))


def pass_on(reply: Reply) -> None:
    """Pass a reply that arrived in time, but that the flow did not receive, to its call's ``late``."""
    if reply.call.late is not None:
        _start(reply.call, lambda: _call_late(reply))


def drain(seconds: float) -> None:
    """Wait for late replies to ``/create`` and for their handlers.

    Args:
        seconds: The longest time to wait.
    """
    deadline = time.monotonic() + seconds
    for thread, call in list(_listening.items()):
        if call.stage == "create":
            thread.join(max(0.0, deadline - time.monotonic()))


def unanswered() -> list[Call]:
    """Return the calls of ``/create`` whose late replies have not arrived."""
    return [call for call in list(_listening.values()) if call.stage == "create"]


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
    except RuntimeError:  # too many threads, or the interpreter is shutting down
        _listening.pop(thread, None)
        return False
    return True


def _read(connected: socket.socket, parser: ResponseParser) -> None:
    deadline = time.monotonic() + LATE_SECONDS
    with contextlib.suppress(OSError, Fault), connected:
        while not parser.complete:
            connected.settimeout(max(0.001, deadline - time.monotonic()))
            data = connected.recv(_CHUNK)
            if data:
                parser.feed(data)
            else:
                parser.end()
                break
        if parser.complete:
            link = Link(connected.fileno)
            link.keep()  # the handler may record it as the connection of the environment's last reply
            _call_late(parser.reply(link))


def _call_late(reply: Reply) -> None:
    if reply.call.late is not None:
        reply.call.late(reply)


after_fork_in_child(_listening.clear)
