"""Local servers, started when first needed: one process for each environment, shared by all of this process.

The servers stop when this process does, however it ends. A forked child neither stops nor uses its parent's,
which would end under it together with the parent: it starts its own when it needs one.
"""

from __future__ import annotations

import contextlib
import os
import queue
import subprocess
import sys
import sysconfig
import tempfile
import threading
import weakref
from pathlib import Path
from typing import IO

from agentgym_gym._lifecycle import STOP_SERVERS, after_fork_in_child, at_exit
from agentgym_gym.errors import NoServer
from agentgym_gym.servers import ALL, SERVERS, server_kind

__all__ = ["LocalServer", "available", "local_server_url", "stop_all"]

START_SECONDS = 30.0
"""How long a server may take until it says where it serves."""

STDERR_TAIL = 2000
"""How much of what a server wrote before it failed goes into the error, in bytes."""


_servers: dict[str, LocalServer] = {}
_lock = threading.Lock()  # held while a server is started or stopped
_known: weakref.WeakSet[LocalServer] = weakref.WeakSet()


class LocalServer:
    """A server in a process of its own.

    Args:
        name: The environment's name, in any case; or ``all``.
        port: The port to serve on; 0 takes any free one, another one at each start.
        start_seconds: How long it may take until it says where it serves.

    Attributes:
        process: The server's process; None before the first start, and in a forked child.
    """

    def __init__(self, name: str, *, port: int = 0, start_seconds: float = START_SECONDS) -> None:
        self.process: subprocess.Popen[str] | None = None
        self._name = name.lower()
        self._port = port
        self._start_seconds = start_seconds
        self._url: str | None = None
        _known.add(self)

    @property
    def url(self) -> str:
        """Where it serves, such as ``http://127.0.0.1:43210``.

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
        """Start it unless it runs, and wait until it accepts connections.

        Returns:
            Where it serves.

        Raises:
            UnknownEnvironment: This project has no server of that name.
            MissingExtra: Something the server needs is not installed.
            NoServer: It did not start, or not in time; the message ends with what it wrote to standard error.
        """
        if self.is_alive():
            return self.url
        missing = None if self._name == ALL else server_kind(self._name).missing()
        if missing is not None:
            raise missing
        self.stop()  # of one that died, the pipe is still to be closed
        self._url = None
        with _error_file() as errors:
            try:
                self.process = process = self._spawn(errors)
                line = self._announcement(process)
                if not line:
                    raise self._failure(process, errors, ended=line is not None)
                self._url = line.split()[-1]
            finally:
                if self._url is None:  # whatever happened, Ctrl-C too
                    self.stop()
        return self._url

    def stop(self) -> None:
        """End it at once, as it has nothing to save; nothing where it does not run."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            _close_input(self.process)

    def disown(self) -> None:
        """Let go of it in a forked child: it is the parent's, and must end with the parent."""
        if self.process is not None:
            _close_input(self.process)
            self.process.returncode = 0  # no child of this process: keeps `Popen` from waiting and warning
        self.process = self._url = None

    def _spawn(self, errors: IO[bytes]) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "agentgym_gym.servers", self._name]
        command += ["--port", str(self._port), "--exit-with-parent"]
        try:
            return subprocess.Popen(  # noqa: S603 - our own module, and a name that was looked up
                command,
                stdin=subprocess.PIPE,  # never written to; its end tells the server that this process ended
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                env=_environment(),
                # Ctrl-C at the terminal is for this process, which may still have environments to close.
                start_new_session=True,
            )
        except OSError as error:
            raise NoServer(f"the local server {self._name!r} cannot be started: {error}") from error

    def _announcement(self, process: subprocess.Popen[str]) -> str | None:
        """Return the line that says where it serves; nothing where it ended without, None where time did."""
        lines: queue.SimpleQueue[str] = queue.SimpleQueue()

        def read() -> None:
            if process.stdout is not None:
                with process.stdout as output:
                    lines.put(next((line for line in output if line.startswith("serving ")), ""))

        # A thread, because not every system can wait for a pipe with a time limit.
        threading.Thread(target=read, name="announcement", daemon=True).start()
        try:
            return lines.get(timeout=self._start_seconds)
        except queue.Empty:
            return None

    def _failure(self, process: subprocess.Popen[str], errors: IO[bytes], *, ended: bool) -> NoServer:
        """Return the error for a server that did not say where it serves."""
        what = f"did not say where it serves within {self._start_seconds:g} s"
        if ended:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(timeout=1)  # its output ends a moment before it does
            what = f"ended with status {process.returncode}"
        self.stop()
        errors.seek(max(0, errors.seek(0, os.SEEK_END) - STDERR_TAIL))
        said = errors.read().decode(errors="replace").strip() or "(nothing)"
        return NoServer(f"the local server {self._name!r} {what}. It wrote to standard error: {said}")


def _error_file() -> IO[bytes]:
    """Return a file for what a server writes to standard error; nothing is kept where none can be made."""
    try:
        return tempfile.TemporaryFile()
    except OSError:
        return Path(os.devnull).open("w+b")


def _close_input(process: subprocess.Popen[str]) -> None:
    if process.stdin is not None:  # its output is closed by the thread that reads it
        process.stdin.close()


def _environment() -> dict[str, str]:
    """Return the variables that a server is started with, so that it imports this very package."""
    variables = dict(os.environ)
    variables["PYTHONSAFEPATH"] = "1"  # not a namesake of one of its modules in the current folder
    root = str(Path(__file__).parents[2])
    if root not in {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}:
        variables["PYTHONPATH"] = os.pathsep.join(filter(None, [root, os.environ.get("PYTHONPATH")]))
    return variables


def local_server_url(name: str) -> str:
    """Return where this process's server for an environment serves, starting it if it does not run.

    One that died is replaced by one on another port, so that whoever still uses the old address is told that
    there is nothing, and not served from environments that are no longer theirs.

    Args:
        name: The environment's name, in any case.

    Raises:
        UnknownEnvironment: This project has no server of that name.
        MissingExtra: Something the server needs is not installed.
        NoServer: It did not start; the message ends with what it wrote to standard error.
    """
    key = name.lower()
    with _lock:
        return _servers.setdefault(key, LocalServer(key)).start()


def available(name: str) -> str | None:
    """Return None if a local server can be started here, else why not. Imports nothing.

    Args:
        name: The environment's name, in any case.
    """
    kind = SERVERS.get(name.lower())
    if kind is None:
        return f"this project has no server of its own for {name!r}"
    missing = kind.missing()
    return None if missing is None else str(missing)


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
