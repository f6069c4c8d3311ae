"""Local servers: the available ones, and the processes that run them, which start on demand.

A local server implements AgentGym's protocol for users without an AgentGym checkout. This project's own are
in the package ``agentgym_servers``, which is referenced only by import paths and need not be installed.
Another package provides a server by an entry point of the group ``agentgym.servers``::

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
import importlib.metadata
import importlib.util
import os
import queue
import re
import subprocess
import sys
import sysconfig
import tempfile
import threading
import weakref
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from agentgym_gym import catalogue
from agentgym_gym._imports import import_object
from agentgym_gym._lifecycle import STOP_SERVERS, after_fork_in_child, at_exit
from agentgym_gym.errors import BadOption, MissingExtra, NoServer, SetupError, UnknownEnvironment

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

GROUP = "agentgym.servers"
"""The entry-point group for servers of other packages."""

ALL = "all"
"""The name that selects all servers, in one process."""

PACKAGE = "agentgym_servers"
"""The package that runs servers."""

START_SECONDS = 30.0
"""Seconds within which a server must announce its address."""

STDERR_TAIL = 2000
"""Size of the part of a failed server's standard error in the error message, in bytes."""


@dataclass(frozen=True, kw_only=True)
class ServerOptions:
    """Options of every server.

    Attributes:
        max_envs: Limit of environments at a time.
        max_body_bytes: Size limit of a request body; the server answers a larger one with HTTP 413.
        keep_seconds: Seconds for which it keeps an idle environment.
        seed: Seed of its generated world.
        data: A folder with a world of the user's, which replaces the generated one.

    Raises:
        BadOption: A number is out of range.
    """

    max_envs: int = 4096
    max_body_bytes: int = 1_048_576
    keep_seconds: float = 3600.0
    seed: int = 0
    data: Path | None = None

    def __post_init__(self) -> None:
        for name in ("max_envs", "max_body_bytes"):
            self._check(name, getattr(self, name) >= 1, "1 or more")
        self._check("keep_seconds", self.keep_seconds > 0, "above 0")
        self._check("seed", self.seed >= 0, "0 or more")

    def _check(self, name: str, right: object, must_be: str) -> None:
        if not right:
            raise BadOption(f"{name}={getattr(self, name)} is out of range; it must be {must_be}")


@dataclass(frozen=True)
class ServerKind:
    """A local server that can be started.

    Attributes:
        title: The environment's name with its capitals.
        create_app: Import path ``"module:function"`` of the function that returns its ASGI application for
            `ServerOptions`; imported on first use.
        needs: The modules it requires in addition to those of every server.
        takes: The options that change its world: ``seed`` for a generated one, and ``data``, a folder with a
            world of the user's.
        extra: The extra of this project that installs its dependencies; empty for a server of another
            package.
    """

    title: str
    create_app: str
    needs: tuple[str, ...] = ()
    takes: tuple[str, ...] = ()
    extra: str = ""

    def app(self, **options: Any) -> Any:
        """Return the ASGI application.

        Args:
            options: ``max_envs``, ``max_body_bytes`` and ``keep_seconds`` of `ServerOptions`, and the options
                in `takes`; None selects the default.

        Raises:
            MissingExtra: A dependency is not installed.
            BadOption: It has no such option, or the value is invalid.
        """
        missing = self.missing()
        if missing is not None:
            raise missing
        options = {name: value for name, value in options.items() if value is not None}
        refused = sorted(set(options) - {"max_envs", "max_body_bytes", "keep_seconds", *self.takes})
        if refused:
            raise BadOption(f"the {self.title} server takes no {', '.join(refused)}")
        return import_object(self.create_app)(ServerOptions(**options))

    def missing(self) -> SetupError | None:
        """Return the error for a missing dependency; None if all are installed. Imports nothing."""
        for module in (PACKAGE, "fastapi", "uvicorn", *self.needs):
            if importlib.util.find_spec(module) is None:
                if not self.extra:
                    return SetupError(f"the local {self.title} server needs the module {module}: install it")
                return MissingExtra(f"the local {self.title} server", extra=self.extra, module=module)
        return None


@dataclass(frozen=True)
class ServedWorld:
    """The world of one of this project's servers, as identified in its replies.

    Attributes:
        title: The environment's name.
        version: The version of all worlds: scores are comparable only between equal versions.
        seed: The seed of a generated world; None for a fixed world or the user's data.
        data: Whether it is the user's data.
    """

    title: str
    version: int
    seed: int | None = None
    data: bool = False

    def __str__(self) -> str:
        what = "" if self.seed is None else f", seed {self.seed}"
        return f"agentgym-servers/{self.version} ({self.title}{', data' if self.data else what})"

    @classmethod
    def parse(cls, served_by: str | None) -> ServedWorld | None:
        """Parse a header or ``info["served_by"]``; return None unless it is one of this project's servers."""
        found = _WORLD.fullmatch(served_by or "")
        if found is None:
            return None
        seed = None if found["seed"] is None else int(found["seed"])
        return cls(found["title"], int(found["version"]), seed, found["data"] is not None)


_WORLD = re.compile(
    r"agentgym-servers/(?P<version>\d+) \((?P<title>\w+)(?:, seed (?P<seed>\d+)|(?P<data>, data))?\)"
)


def servers() -> Mapping[str, str]:
    """Return the import paths of all servers by lower-case name; this project's have precedence."""
    own = {
        environment.name.lower(): environment.local_server
        for environment in catalogue.environments()
        if environment.local_server is not None
    }
    others = {point.name.lower(): point.value for point in importlib.metadata.entry_points(group=GROUP)}
    return {**others, **own}


def server_kind(name: str) -> ServerKind:
    """Return a server.

    Args:
        name: The name of an environment or of an entry point, ignoring case; or an import path
            ``"module:NAME"``.

    Raises:
        UnknownEnvironment: There is no server of that name; the message lists all.
        SetupError: Its package is not installed, or the path is not that of a `ServerKind`.
    """
    path = name
    if ":" not in name:
        known = servers()
        if name.lower() not in known:
            raise UnknownEnvironment(f"there is no server named {name!r} here; there is: {', '.join(known)}")
        path = known[name.lower()]
    package = path.partition(":")[0].partition(".")[0]
    if importlib.util.find_spec(package) is None:
        raise SetupError(f"the server {name!r} is in the package {package}, which is not installed")
    kind = import_object(path)
    if not isinstance(kind, ServerKind):
        raise SetupError(f"{path} is of type {type(kind).__name__}, and should be a ServerKind")
    return kind


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
        start_seconds: Seconds within which it must announce its address.

    Attributes:
        process: The server's process; None before the first start, and in a forked child.
    """

    def __init__(self, name: str, *, port: int = 0, start_seconds: float = START_SECONDS) -> None:
        self.process: subprocess.Popen[str] | None = None
        self._name = name
        self._port = port
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
        command += ["--port", str(self._port), "--exit-with-parent"]
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
        what = f"did not say where it serves within {self._start_seconds:g} s"
        if ended:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(timeout=1)  # its output ends a moment before the process does
            what = f"ended with status {process.returncode}"
        self.stop()
        errors.seek(max(0, errors.seek(0, os.SEEK_END) - STDERR_TAIL))
        said = errors.read().decode(errors="replace").strip() or "(nothing)"
        return NoServer(f"the local server {self._name!r} {what}. It wrote to standard error: {said}")


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

    A dead server is replaced on another port. So clients of the old address get connection errors, instead of
    environments that do not belong to them.

    Args:
        name: As for `server_kind`.

    Raises:
        UnknownEnvironment: There is no server of that name.
        SetupError: A dependency of the server is not installed.
        NoServer: It did not start; the message ends with its standard error.
    """
    key = name if ":" in name else servers().get(name.lower(), name)
    with _lock:
        return _servers.setdefault(key, LocalServer(key)).start()


def available(name: str) -> str | None:
    """Return None if a local server can be started here, or otherwise the reason.

    Args:
        name: As for `server_kind`.
    """
    try:
        missing = server_kind(name).missing()
    except SetupError as error:
        return str(error)
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
