"""Starts the OpenAI-compatible servers of sglang, vLLM and transformers, and always stops them.

::

    with Engine("vllm", "ckpts/step_10", arguments=["--max-model-len", "8192"]) as engine:
        ChatAgent(engine.model, base_url=engine.base_url)

An engine listens on a free port of 127.0.0.1. It stops on request, when this process exits, and when this
process is killed: a small process between the two, `agentgym_gym._guard`, ends all processes that the engine
started.
"""

from __future__ import annotations

import contextlib
import os
import random
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from agentgym_gym import _guard
from agentgym_gym._lifecycle import STOP_SERVERS, after_fork_in_child, at_exit
from agentgym_gym._text import redact_within
from agentgym_gym.errors import BadFile, BadOption, SetupError
from agentgym_gym.evaluate._engines.checkpoints import checkpoints, model_folder
from agentgym_gym.evaluate._engines.commands import (
    Kind,
    check_arguments,
    command_line,
    engine_variables,
    find_python,
    find_version,
    served_name,
)

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = ["Engine", "checkpoints"]

HOST = "127.0.0.1"

PORTS = range(20_000, 32_768)
"""Range of ports to try, below the ephemeral ports of Linux."""

PORTS_TRIED = 3
"""Attempts to start an engine if another program takes its port each time."""

POLL_SECONDS = 0.1
"""Seconds between two health checks while the engine starts."""

HEALTH_SECONDS = 10.0
"""Timeout of a health check in seconds; sglang generates a token first."""

GRACE_SECONDS = 5.0
"""Seconds for an engine to exit after SIGTERM; it has nothing to save."""

TAIL_LINES, TAIL_BYTES = 30, 6000
"""Length of the engine's log excerpt in an error."""

_running: set[Engine] = set()


class Engine:
    """An inference server for one model, in separate processes; a context manager.

    Args:
        kind: ``sglang``, ``vllm`` or ``transformers``.
        model_path: The folder of a model, or a checkpoint folder of verl that contains one
            (``global_step_10``).
        arguments: Options of the engine itself, passed on unchanged: ``["--dtype", "float16"]``.
        log: A file to which the engine's output is appended; by default a temporary file, which is deleted
            when the engine stops.
        start_seconds: Timeout in seconds for the engine to become ready.
        python: The Python that has the engine installed, as a name or a path; by default the current
            interpreter.

    Attributes:
        model: The model name for requests.
        command: The engine's command line; empty before the start.
        version: The engine's version; None before the start.

    Raises:
        BadOption: The engine, the model or the Python does not exist, or an argument is reserved, such as the
            address, the name of the model or a key.
    """

    def __init__(
        self,
        kind: Kind,
        model_path: str,
        *,
        arguments: Sequence[str] = (),
        log: Path | None = None,
        start_seconds: float = 600.0,
        python: str | None = None,
    ) -> None:
        check_arguments(kind, model_path, arguments)
        if not start_seconds > 0:
            raise BadOption("start_seconds", start_seconds, "above 0")
        self.kind: Kind = kind
        self.model_path = model_folder(model_path)
        self.model = served_name(kind, self.model_path)
        self.command: list[str] = []
        self.version: str | None = None
        self._arguments = list(arguments)
        self._log = log
        self._start_seconds = start_seconds
        self._python = find_python(python)
        self._process: subprocess.Popen[bytes] | None = None
        self._port = 0
        self._output: IO[bytes] | None = None
        self._output_begins = 0
        self._last_lines = ""

    @property
    def base_url(self) -> str:
        """Base URL of the server, such as ``http://127.0.0.1:23456/v1``.

        Raises:
            SetupError: The engine was never started.
        """
        if not self._port:
            raise SetupError(f"the engine {self.kind} has not been started")
        return f"http://{HOST}:{self._port}/v1"

    def is_alive(self) -> bool:
        """Return whether the engine's process is running."""
        return self._process is not None and self._process.poll() is None

    def describe(self) -> dict[str, Any]:
        """Return the engine, its version and its command as JSON values, for the record of a run."""
        return {"engine": self.kind, "version": self.version, "command": list(self.command)}

    def log_tail(self, lines: int = TAIL_LINES) -> str:
        """Return the last lines of the engine's output, without control characters and secrets.

        This redacts passwords in URLs, and the values of environment variables whose names contain KEY,
        TOKEN, SECRET, PASSW or CREDENTIAL.

        Args:
            lines: Number of lines.
        """
        output = self._last_lines
        if self._output is not None:
            output = _tail(self._output, self._output_begins)
        return "\n".join(output.splitlines()[-lines:])

    def __enter__(self) -> Self:
        """Start the engine."""
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Stop the engine."""
        self.stop()

    def start(self) -> str:
        """Start the engine unless it is running, and wait until it is ready.

        Returns:
            The `base_url` of the engine.

        Raises:
            BadOption: The log cannot be written.
            SetupError: The engine is not installed, exited before it was ready, or was not ready in time; the
                message ends with the last lines of its output.
        """
        if self.is_alive():
            return self.base_url
        if os.name != "posix":
            raise SetupError(
                "engines start only on Linux and macOS; start the server yourself and pass its base URL"
            )
        self.stop()
        self.version = find_version(self.kind, self._python)
        deadline = time.monotonic() + self._start_seconds
        for tries_left in reversed(range(PORTS_TRIED)):
            self._port = _free_port()
            try:
                problem = self._start_and_wait(deadline)
            except BaseException:  # Ctrl-C too
                self.stop()
                raise
            if problem is None:
                break
            self.stop()
            if not (tries_left and self._port_was_taken() and time.monotonic() < deadline):
                raise self._failure(problem)
        return self.base_url

    def stop(self) -> None:
        """Stop the engine and all processes that it started; do nothing if it is not running."""
        process = self._process
        if process is not None:
            if process.stdin is not None:
                process.stdin.close()  # from here on the engine stops even if this function is interrupted
            try:
                process.wait(GRACE_SECONDS + _guard.KILL_SECONDS + 5)
            except subprocess.TimeoutExpired:
                _kill_group(process.pid)
                process.wait()
            if process.returncode == -signal.SIGKILL:  # the guard was killed, and the engine may be left
                _kill_group(process.pid)
            self._process = None
        if self._output is not None:
            self._last_lines = _tail(self._output, self._output_begins)
            self._output.close()
            self._output = None
        _running.discard(self)

    def _start_and_wait(self, deadline: float) -> str | None:
        """Start the processes; return None once the engine is ready, otherwise the cause of the failure."""
        self.command = command_line(
            self.kind,
            self.model_path,
            self._port,
            self._arguments,
            python=self._python,
            version=self.version,
        )
        self._output = output = _open_log(self._log)
        self._output_begins = os.fstat(output.fileno()).st_size
        _running.add(self)
        # Isolated mode imports no file of the working directory. The engine still gets all variables.
        runner = [sys.executable, "-I", "-S", str(Path(_guard.__file__)), str(GRACE_SECONDS)]
        try:
            self._process = process = subprocess.Popen(  # noqa: S603 - the engine that the caller requested
                [*runner, *self.command],
                stdin=subprocess.PIPE,  # never written to; it closes when this process exits
                stdout=output,
                stderr=subprocess.STDOUT,
                env=engine_variables(os.environ),
                start_new_session=True,  # Ctrl-C at the terminal reaches only this process
            )
        except OSError as error:
            raise SetupError(f"the engine {self.kind} cannot be started: {error}") from error
        while process.poll() is None:
            if _is_ready(self._port, min(HEALTH_SECONDS, max(0.1, deadline - time.monotonic()))):
                return None if _listens(process.pid, self._port) else "found its port taken"
            if time.monotonic() > deadline:
                return f"did not answer within {self._start_seconds:g} s"
            time.sleep(POLL_SECONDS)
        status = f" with status {process.returncode}" if process.returncode >= 0 else ""
        return f"ended{status} before it answered"

    def _port_was_taken(self) -> bool:
        """Return whether another program took the port after this process chose it."""
        return not _is_free(self._port) or "address already in use" in self._last_lines.lower()

    def _failure(self, problem: str) -> SetupError:
        where = f" ({self._log})" if self._log is not None else ""
        output = self.log_tail() or "(nothing)"
        return SetupError(f"the engine {self.kind} {problem}. The last lines of its log{where}:\n{output}")

    def _disown(self) -> None:
        """Drop the process handle in a forked child: the engine belongs to the parent."""
        if self._process is not None:
            if self._process.stdin is not None:
                self._process.stdin.close()
            self._process.returncode = 0  # not our child: stops `Popen` from waiting and warning
        self._process = None


def _free_port() -> int:
    """Return a free port.

    Raises:
        SetupError: No port is free.
    """
    for port in random.sample(PORTS, 1000):
        if _is_free(port):
            return port
    raise SetupError(f"no free port was found on {HOST} from {PORTS.start} to {PORTS.stop - 1}")


def _is_free(port: int) -> bool:
    try:
        socket.create_server((HOST, port)).close()
    except OSError:
        return False
    return True


def _is_ready(port: int, seconds: float) -> bool:
    """Return whether ``GET /health`` returns 200 in time, even if the bytes arrive slowly."""
    deadline = time.monotonic() + seconds
    request = f"GET /health HTTP/1.1\r\nHost: {HOST}:{port}\r\nConnection: close\r\n\r\n"
    line = b""
    try:
        with socket.create_connection((HOST, port), timeout=seconds) as connection:
            connection.sendall(request.encode())
            while b"\n" not in line and len(line) < 1000:  # noqa: PLR2004 - no status line is so long
                connection.settimeout(max(0.001, deadline - time.monotonic()))
                received = connection.recv(1000)
                if not received:
                    break
                line += received
    except OSError:
        return False
    return re.match(rb"HTTP/1\.[01] 200\b", line) is not None


def _listens(ancestor: int, port: int) -> bool:
    """Return whether a descendant of a process listens on a port; also True if the system cannot show it."""
    try:
        rows = [row.split() for row in Path("/proc/net/tcp").read_text("ascii").splitlines()[1:]]
    except OSError:
        return True
    address = f"0100007F:{port:04X}" if sys.byteorder == "little" else f"7F000001:{port:04X}"
    sockets = {f"socket:[{row[9]}]" for row in rows if row[1] == address and row[3] == "0A"}
    below = _guard.descendants(ancestor)
    if not sockets or below is None:
        return True
    for pid in below:
        try:
            opened = list(Path(f"/proc/{pid}/fd").iterdir())
        except (FileNotFoundError, ProcessLookupError):  # the process has ended
            continue
        except OSError:  # the process belongs to another user
            return True
        for each in opened:
            with contextlib.suppress(OSError):
                if os.readlink(each) in sockets:  # noqa: PTH115 - not a path of a file
                    return True
    return False


def _open_log(path: Path | None) -> IO[bytes]:
    """Open the log file of an engine for appending.

    Raises:
        BadOption: The file cannot be written.
    """
    if path is None:
        return tempfile.TemporaryFile("a+b")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        return path.open("a+b")
    except OSError as error:
        raise BadFile(f"the log {str(path)!r:.300} cannot be written: {error.strerror}", path=path) from error


# Terminal escape sequences, then other non-text characters.
_CONTROL = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|.)|[^\n\t\x20-\x7e\xa0-\U0010ffff]"
)
_SECRET_NAME = re.compile(r"KEY|TOKEN|SECRET|PASSW|CREDENTIAL", re.IGNORECASE)


def _tail(output: IO[bytes], begins: int) -> str:
    """Return the end of an engine's output since its start, redacted and without control characters."""
    size = os.fstat(output.fileno()).st_size
    # Read more than is shown, so that no secret is cut in two. `pread`, because the engine shares the file
    # position.
    start = max(begins, size - 4 * TAIL_BYTES)
    text = os.pread(output.fileno(), size - start, start).decode(errors="replace").replace("\r", "\n")
    secrets = (value for name, value in os.environ.items() if _SECRET_NAME.search(name))
    text = redact_within(_CONTROL.sub("", text), secrets)[-TAIL_BYTES:]
    return "\n".join(line.rstrip() for line in text.splitlines() if line.strip())


def _kill_group(pid: int) -> None:
    with contextlib.suppress(OSError):
        os.killpg(pid, signal.SIGKILL)


def _stop_all() -> None:
    for engine in list(_running):
        engine.stop()


def _disown_all() -> None:
    for engine in _running:
        engine._disown()  # noqa: SLF001 - of this very module
    _running.clear()


at_exit(_stop_all, order=STOP_SERVERS)
after_fork_in_child(_disown_all)
