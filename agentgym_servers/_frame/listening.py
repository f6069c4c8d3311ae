"""Runs an application in uvicorn: binds the socket, prints the address, stops on signals."""

from __future__ import annotations

import contextlib
import errno
import os
import signal
import socket
import sys
import threading
from typing import TYPE_CHECKING, Any

import uvicorn

from agentgym_gym.errors import BadOption
from agentgym_servers._frame.request_limits import INCOMING_LIMITS, IncomingLimits, limited_protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from starlette.types import ASGIApp

__all__ = ["listen", "run_until_stopped", "url_of"]

MAX_PORT = 65_535

KEEP_ALIVE_SECONDS = 3600
"""How long an idle connection is kept open, in seconds.

This is as long as `ServerOptions` keeps an idle environment: an update of a large model takes many minutes,
during which no client sends anything. The end of a client's process closes its connections.
"""

MAX_FILES = 65_536
"""How many open files and connections the server requests of the system."""

GRACE_SECONDS = 2
"""How long requests in progress may continue after a stop signal, in seconds."""


def listen(host: str, port: int) -> socket.socket:
    """Return a listening socket.

    Args:
        host: A name or address of this machine.
        port: A port number; 0 for any free port.

    Raises:
        BadOption: The port is in use or out of range, or the host is not an address of this machine.
    """
    if not 0 <= port <= MAX_PORT:
        raise BadOption("port", port, f"0 to {MAX_PORT}; 0 takes any free port")
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listener = socket.create_server(address[:2], family=family, backlog=2048)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise BadOption(
                f"cannot listen on port {port} of {host}: it is in use; stop the program that listens there, "
                "or choose another port (0 takes any free one)"
            ) from error
        raise BadOption(f"cannot listen on port {port} of {host}: {error.strerror or error}") from error
    # The protocol is given as TCP because asyncio would otherwise not turn off Nagle's algorithm, and each
    # step would take 40 ms.
    return socket.socket(listener.family, listener.type, socket.IPPROTO_TCP, fileno=listener.detach())


def url_of(listener: socket.socket) -> str:
    """Return the URL of a listening socket."""
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if listener.family == socket.AF_INET6 else f"http://{host}:{port}"


def run_until_stopped(
    app: ASGIApp,
    listener: socket.socket,
    *,
    title: str,
    exit_with_parent: bool,
    limits: IncomingLimits = INCOMING_LIMITS,
) -> None:
    """Serve until SIGINT, SIGTERM or, optionally, the end of standard input.

    Args:
        app: The application.
        listener: A listening socket; the caller closes it.
        title: The name of the server in the line printed at the start.
        exit_with_parent: Whether to stop also at the end of standard input.
        limits: Limits on unfinished requests.
    """
    config = uvicorn.Config(
        app,
        http=limited_protocol(limits),
        log_level="warning",
        access_log=False,
        lifespan="off",
        ws="none",
        proxy_headers=False,
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=GRACE_SECONDS,
    )
    server = _Announcing(config, f"serving {title} on {url_of(listener)}")

    def stop(*_: Any) -> None:
        server.should_exit = True

    _raise_file_limit()
    if exit_with_parent:
        threading.Thread(target=_at_end_of_input, args=(stop,), name="exit-with-parent", daemon=True).start()
    with _on_signals(stop):
        server.run(sockets=[listener])


def _raise_file_limit() -> None:
    """Allow as many open connections as the system does; a shell's usual limit is 1,024 files."""
    if sys.platform == "win32":
        return
    import resource  # noqa: PLC0415 - not on Windows

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    target = MAX_FILES if hard == resource.RLIM_INFINITY else min(hard, MAX_FILES)
    if soft != resource.RLIM_INFINITY and soft < target:
        with contextlib.suppress(OSError, ValueError):  # some systems allow less than they report
            resource.setrlimit(resource.RLIMIT_NOFILE, (target, hard))


class _Announcing(uvicorn.Server):
    """Prints a line once it accepts connections."""

    def __init__(self, config: uvicorn.Config, line: str) -> None:
        super().__init__(config)
        self._line = line

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets=sockets)
        print(self._line, flush=True)  # noqa: T201 - a parent waits for this line


def _at_end_of_input(stop: Callable[[], None]) -> None:
    # `sys.stdin` is not used: Python aborts if a thread holds its buffer's lock at exit.
    with contextlib.suppress(OSError):  # a missing standard input counts as its end
        while os.read(0, 4096):
            pass
    stop()


@contextlib.contextmanager
def _on_signals(stop: Callable[..., None]) -> Iterator[None]:
    """Make SIGINT and SIGTERM call `stop` only.

    uvicorn handles these signals, but after it has stopped it raises them again for the previous handlers.
    The default handler terminates the process, which a supervisor sees as a failure.
    """
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread may handle signals
        return
    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
