"""Local servers: the available ones, and the processes that run them, which start on demand.

A local server implements AgentGym's protocol for users without an AgentGym checkout. This project's own are
in the package ``agentgym_servers``, which is referenced only by import paths and need not be installed.
Another package provides a server by an entry point of the group ``agentgym.servers``:

.. code-block:: toml

    [project.entry-points."agentgym.servers"]
    mygame = "my_package:SERVER"

with ``SERVER = ServerKind("MyGame", "my_package.server:create_app")``.

All environments of one kind in this process share one server process. The servers stop when this process ends
for any reason. A forked child neither stops nor uses its parent's servers, which end with the parent: it
starts its own on demand.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import os
import queue
import subprocess
import sys
import sysconfig
import tempfile
import threading
import weakref
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any

from agentgym_gym._lifecycle import STOP_SERVERS, after_fork_in_child, at_exit
from agentgym_gym._server_kinds import (
    ALL,
    GROUP,
    PACKAGE,
    ServedWorld,
    ServerKind,
    ServerOptions,
    available,
    server_kind,
    server_path,
    servers,
)
from agentgym_gym.errors import NoServer, SetupError

__all__ = [
    "ALL",
    "GROUP",
    "LocalServer",
    "ServedWorld",
    "ServerKind",
    "ServerOptions",
    "available",
    "local_server_url",
    "serve",
    "server_kind",
    "servers",
    "stop_all",
]

START_SECONDS = 30.0
"""Seconds within which a server must announce its address."""

STDERR_TAIL = 2000
"""Size of the part of a failed server's standard error in the error message, in bytes."""


def serve(name: str, **options: Any) -> None:
    """Run a server until SIGINT or SIGTERM.

    Args:
        name: As for `server_kind`; or ``all``.
        options: As for ``agentgym_servers.serve``.

    Raises:
        SetupError: The package that runs servers is not installed.
        AgentGymError: ``agentgym_servers.serve`` raised it.
    """
    if importlib.util.find_spec(PACKAGE) is None:
        raise SetupError(f"local servers need the package {PACKAGE}, which is not installed")
    importlib.import_module(PACKAGE).serve(name, **options)


_servers: dict[str, LocalServer] = {}
_lock = threading.Lock()  # held while a server is started or stopped
_known: weakref.WeakSet[LocalServer] = weakref.WeakSet()


class LocalServer:
    """A server in a separate process.

    Args:
        name: As for `server_kind`; or ``all``.
        port: The port; 0 selects a free one at each start.
        arguments: More command-line arguments of ``python -m agentgym_servers``.
        start_seconds: Seconds within which it must announce its address.

    Attributes:
        process: The server's process; None before the first start, and in a forked child.
    """

    def __init__(
        self,
        name: str,
        *,
        port: int = 0,
        arguments: Sequence[str] = (),
        start_seconds: float = START_SECONDS,
    ) -> None:
        self.process: subprocess.Popen[str] | None = None
        self._name = name
        self._port = port
        self._arguments = arguments
        self._start_seconds = start_seconds
        self._url: str | None = None
        _known.add(self)

    @property
    def url(self) -> str:
        """Its base URL, such as ``http://127.0.0.1:43210``.

        Raises:
            NoServer: It was never started.
        """
        if self._url is None:
            raise NoServer(f"the local server {self._name!r} has not been started")
        return self._url

    def is_alive(self) -> bool:
        """Return whether its process runs."""
        return self.process is not None and self.process.poll() is None

    def start(self) -> str:
        """Start it unless it is running, and wait until it accepts connections.

        Returns:
            Its base URL.

        Raises:
            UnknownEnvironment: There is no server of that name.
            SetupError: A dependency of the server is not installed.
            NoServer: It did not start in time; the message ends with its standard error.
        """
        if self.is_alive():
            return self.url
        missing = None if self._name.lower() == ALL else server_kind(self._name).missing()
        if missing is not None:
            raise missing
        self.stop()  # closes the pipe of a dead process
        self._url = None
        with _error_file() as errors:
            try:
                self.process = process = self._spawn(errors)
                line = self._announcement(process)
                if not line:
                    raise self._failure(process, errors, ended=line is not None)
                self._url = line.split()[-1]
            finally:
                if self._url is None:  # after any failure, including Ctrl-C
                    self.stop()
        return self._url

    def stop(self) -> None:
        """Kill it, since it has nothing to save; does nothing if it is not running."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            _close_input(self.process)

    def disown(self) -> None:
        """Detach it in a forked child: it belongs to the parent, and must end with the parent."""
        if self.process is not None:
            _close_input(self.process)
            self.process.returncode = 0  # not a child of this process: keeps `Popen` from waiting and warning
        self.process = self._url = None

    def _spawn(self, errors: IO[bytes]) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", PACKAGE, self._name]
        command += ["--port", str(self._port), "--exit-with-parent", *self._arguments]
        try:
            return subprocess.Popen(  # noqa: S603 - our own module, and a name that was looked up
                command,
                stdin=subprocess.PIPE,  # never written to; its end shows the server that this process ended
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                env=_environment(),
                # Ctrl-C at the terminal is for this process, which may still have to close environments.
                start_new_session=True,
            )
        except OSError as error:
            raise NoServer(f"the local server {self._name!r} cannot be started: {error}") from error

    def _announcement(self, process: subprocess.Popen[str]) -> str | None:
        """Return the line with the address; empty if the server ended before, None after the time limit."""
        lines: queue.SimpleQueue[str] = queue.SimpleQueue()

        def read() -> None:
            if process.stdout is not None:
                with process.stdout as output:
                    lines.put(next((line for line in output if line.startswith("serving ")), ""))

        # A thread, because not every system can wait for a pipe with a timeout.
        threading.Thread(target=read, name="announcement", daemon=True).start()
        try:
            return lines.get(timeout=self._start_seconds)
        except queue.Empty:
            return None

    def _failure(self, process: subprocess.Popen[str], errors: IO[bytes], *, ended: bool) -> NoServer:
        """Return the error for a server that did not announce its address."""
        reason = f"did not announce its address within {self._start_seconds:g} s"
        if ended:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(timeout=1)  # its output ends a moment before the process does
            reason = f"ended with status {process.returncode}"
        self.stop()
        errors.seek(max(0, errors.seek(0, os.SEEK_END) - STDERR_TAIL))
        output = errors.read().decode(errors="replace").strip() or "(nothing)"
        return NoServer(f"the local server {self._name!r} {reason}. Its standard error: {output}")


def _error_file() -> IO[bytes]:
    """Return a file for a server's standard error, or the null device if no file can be created."""
    try:
        return tempfile.TemporaryFile()
    except OSError:
        return Path(os.devnull).open("w+b")


def _close_input(process: subprocess.Popen[str]) -> None:
    if process.stdin is not None:  # the reading thread closes its output
        process.stdin.close()


def _environment() -> dict[str, str]:
    """Return environment variables with which a server imports this very package."""
    variables = dict(os.environ)
    variables["PYTHONSAFEPATH"] = "1"  # prevents imports from the current folder
    root = str(Path(__file__).parents[1])
    if root not in {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}:
        variables["PYTHONPATH"] = os.pathsep.join(filter(None, [root, os.environ.get("PYTHONPATH")]))
    return variables


def local_server_url(name: str) -> str:
    """Return the URL of this process's server for an environment, and start it if it is not running.

    A dead server is replaced on another port, so clients of the old address get connection errors, instead of
    environments that do not belong to them.

    Args:
        name: As for `server_kind`.

    Raises:
        UnknownEnvironment: There is no server of that name.
        SetupError: A dependency of the server is not installed.
        NoServer: It did not start; the message ends with its standard error.
    """
    path = server_path(name)
    with _lock:
        return _servers.setdefault(path, LocalServer(path)).start()


def stop_all() -> None:
    """Stop every server that `local_server_url` started in this process."""
    with _lock:
        while _servers:
            _servers.popitem()[1].stop()


def _disown_all() -> None:
    global _lock  # noqa: PLW0603 - a thread of the parent may hold it, and there is no such thread here
    _lock = threading.Lock()
    for server in _known:
        server.disown()
    _servers.clear()


at_exit(stop_all, order=STOP_SERVERS)
after_fork_in_child(_disown_all)
