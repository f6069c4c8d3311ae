"""Executes statements in a child process, so that no statement can block or crash the server."""

from __future__ import annotations

import contextlib
import json
import logging
import signal
import subprocess
import sys
import threading
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from agentgym_servers.sqlgym._statement_runner import BEGUN

if TYPE_CHECKING:
    from agentgym_servers.sqlgym._world import SqlWorld

__all__ = [
    "CUT",
    "DATA_BOUNDS",
    "MADE_BOUNDS",
    "STOPPED",
    "Bounds",
    "Execution",
    "NotExecuted",
    "StatementProcess",
]

logger = logging.getLogger("agentgym_servers")

CUT = "interrupted"
"""The result of a statement that was stopped: SQLite's own term."""

STOPPED = "the worker processes are stopped"
"""Why a statement is not executed once the server stops."""

_RUNNER = Path(__file__).with_name("_statement_runner.py")
_WAIT_SECONDS = 60.0  # beyond the statement's own limit, on a busy machine; starting a process included
_STARTS = 3  # of processes for one statement, if earlier ones exit before it begins
_EXIT_SECONDS = 5.0  # for a process to exit after it has closed its output
_KILLED = {-signal.SIGTERM, -getattr(signal, "SIGKILL", signal.SIGTERM)}


@dataclass(frozen=True)
class Bounds:
    """The limits of a statement.

    Attributes:
        steps: Steps of SQLite's virtual machine.
        seconds: Seconds of processor time until SQLite interrupts the statement, a tenth of a second before
            its process ends.
        heap_bytes: Memory of SQLite.
        memory_bytes: Address space of the process.
        value_bytes: Length of one value; 0 for SQLite's own limit.
    """

    steps: int
    seconds: float
    heap_bytes: int
    memory_bytes: int
    value_bytes: int = 0


MADE_BOUNDS = Bounds(
    steps=20_000_000, seconds=0.9, heap_bytes=64_000_000, memory_bytes=512_000_000, value_bytes=1 << 20
)
"""The limits for generated databases, of some hundred rows.

A statement reaches the limit of steps first, in a third of a second, unless it spends its time in functions.
Its outcome then does not depend on the machine. The process ends within one second of processor time.
"""

DATA_BOUNDS = Bounds(steps=10**15, seconds=30, heap_bytes=512_000_000, memory_bytes=2_000_000_000)
"""The limits for BIRD's databases: seconds as in BIRD's evaluation, and values as long as SQLite allows."""


@dataclass(frozen=True)
class Execution:
    """The result of a statement.

    Attributes:
        state: Its result or its error as text.
        fingerprint: A text that is the same for the same set of rows; empty if the statement failed or is
            empty.
        failure: Why it failed: because of the statement, of a limit or of the file of the database; empty if
            it did not.
        volatile: Whether its rows may differ in the next execution.
    """

    state: str
    fingerprint: str = ""
    failure: Literal["", "statement", "limit", "database"] = ""
    volatile: bool = False


class NotExecuted(Exception):
    """A statement could not be executed, for a reason that is not in the statement."""


class _Cut(Exception):
    """The statement ended its process."""


class StatementProcess:
    """A process that executes statements; it starts on first use and restarts after each exit.

    Attributes:
        bounds: The limits of a statement.
    """

    def __init__(self, bounds: Bounds) -> None:
        self.bounds = bounds
        self._lock = threading.Lock()  # for starts and ends, because `close` runs in another thread
        self._closed = False
        self.process: subprocess.Popen[bytes] | None = None
        self._opened: set[str] = set()

    def execute(self, database: str, sql: str, world: SqlWorld, factor: int = 1) -> Execution:
        """Execute a statement.

        A process that exits before the statement begins is replaced: the statement did not cause the exit.

        Args:
            database: The name of the database.
            sql: The statement.
            world: The databases.
            factor: A multiple of the limits of steps and seconds.

        Raises:
            NotExecuted: No process began the statement, or another program ended the process.
        """
        request: dict[str, Any] = {
            "database": database,
            "sql": sql,
            "steps": factor * self.bounds.steps,
            "seconds": factor * self.bounds.seconds,
        }
        for _ in range(_STARTS):
            process = self.start()
            is_open = database in self._opened
            request["open"] = None if is_open else asdict(world.source(database))
            try:
                execution = self._response(process, request)
            except _Cut:
                logger.info("a statement on %s was cut, and its process ended", database)
                return Execution(CUT, failure="limit")
            if execution is not None:
                if execution.failure != "database":  # otherwise its file is opened again
                    self._opened.add(database)
                return execution
        raise NotExecuted(f"{_STARTS} processes exited before they began the statement")

    def start(self) -> subprocess.Popen[bytes]:
        """Start the process unless it runs, and return it.

        Raises:
            NotExecuted: `close` was called.
        """
        with self._lock:
            if self._closed:
                raise NotExecuted(STOPPED)
            if self.process is None or self.process.poll() is not None:
                self._end()
                bounds = self.bounds
                limits = map(str, (bounds.memory_bytes, bounds.heap_bytes, bounds.value_bytes))
                self.process = subprocess.Popen(  # noqa: S603 - this interpreter and a file of this package
                    [sys.executable, "-I", str(_RUNNER), *limits],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.DEVNULL,
                    start_new_session=True,  # Ctrl-C in a terminal is for the server, which ends this process
                )
            return self.process

    def _response(self, process: subprocess.Popen[bytes], request: dict[str, Any]) -> Execution | None:
        """Send a request and return the response; None if the process ended before the statement began.

        Raises:
            _Cut: The statement ended the process.
            NotExecuted: Another program ended the process, or the statement made no progress for too long.
        """
        # The operating system ends a process that uses too much processor time. This timer is for one that
        # waits, such as for a disk, and for systems without such limits.
        wait = 2 * request["seconds"] + _WAIT_SECONDS
        timer = threading.Timer(wait, process.kill)
        timer.daemon = True
        timer.start()
        begun = response = b""
        try:
            with contextlib.suppress(OSError):
                _stdin(process).write(json.dumps(request).encode("ascii") + b"\n")
                _stdin(process).flush()
                begun = _stdout(process).readline()
                response = _stdout(process).readline()
        finally:
            timer.cancel()
            timer.join()
        if response.endswith(b"\n"):
            return Execution(**json.loads(response))
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_EXIT_SECONDS)
        status = process.returncode
        self.end()
        if begun != BEGUN:
            return None
        if status in _KILLED:
            raise NotExecuted(f"its process was killed by another program, or after {wait:g} s")
        raise _Cut

    def end(self) -> None:
        """End the process if it runs."""
        with self._lock:
            self._end()

    def close(self) -> None:
        """End the process, and start no other one."""
        with self._lock:
            self._closed = True
            self._end()

    def _end(self) -> None:
        process, self.process = self.process, None
        self._opened = set()
        if process is not None:
            process.kill()
            process.wait()
            for pipe in (process.stdin, process.stdout):
                with contextlib.suppress(OSError):
                    if pipe is not None:
                        pipe.close()


def _stdin(process: subprocess.Popen[bytes]) -> Any:
    return process.stdin


def _stdout(process: subprocess.Popen[bytes]) -> Any:
    return process.stdout
