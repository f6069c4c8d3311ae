"""Executes statements in child processes, so that no statement can block or crash the server."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import subprocess
import sys
import threading
import weakref
from collections.abc import Hashable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agentgym_servers.sqlgym._fair_queue import FairQueue
from agentgym_servers.sqlgym._worker import BEGUN

if TYPE_CHECKING:
    from agentgym_servers.sqlgym._world import SqlTask, World

__all__ = ["CUT", "DATA_BOUNDS", "MADE_BOUNDS", "Bounds", "Judgement", "NotExecuted", "WorkerPool"]

logger = logging.getLogger("agentgym_servers")

CUT = "interrupted"
"""The result of a statement that was stopped: SQLite's own term."""

_WORKER = Path(__file__).with_name("_worker.py")
_WAIT_SECONDS = 60.0  # beyond the statement's own limit, on a busy machine; starting a process included
_STOPPED = "the worker processes are stopped"
_STARTS = 3  # of processes for one statement, where the earlier ones exit before it begins


@dataclass(frozen=True)
class Bounds:
    """The limits of a statement.

    Attributes:
        steps: Steps of SQLite's virtual machine.
        seconds: Seconds of processor time until SQLite interrupts the statement, a tenth of a second before
            its process ends; the statement with the right answer has the same limit.
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
class Judgement:
    """The outcome of a statement.

    Attributes:
        state: Its result or its error as text.
        right: Whether its rows equal those of the right answer.
    """

    state: str
    right: bool


class NotExecuted(Exception):
    """A statement could not be executed, for a reason that is not in the statement."""


class _Cut(Exception):
    """The process exited, or was killed, while it executed the statement."""


class _Child:
    """A process that executes statements; it starts on first use and restarts after each exit."""

    def __init__(self, bounds: Bounds) -> None:
        self._bounds = bounds
        self._lock = threading.Lock()  # for starts and ends, because `close` runs in another thread
        self._closed = False
        self.process: subprocess.Popen[bytes] | None = None
        self._opened: set[str] = set()

    def judge(self, task: SqlTask, sql: str, world: World) -> Judgement:
        """Execute a statement and compare its result with that of the task's statement.

        A process that exits before the statement begins is replaced: the statement did not cause the exit.

        Raises:
            _Cut: The statement exceeded its limits, and the process was ended.
            NotExecuted: No process began the statement.
        """
        request: dict[str, Any] = {
            "database": task.database,
            "sql": sql,
            "right": task.sql,
            "steps": self._bounds.steps,
            "seconds": self._bounds.seconds,
        }
        for _ in range(_STARTS):
            process = self.start()
            is_open = task.database in self._opened
            request["open"] = None if is_open else asdict(world.source(task.database))
            response = self._response(process, json.dumps(request).encode("ascii") + b"\n")
            if response is not None:
                self._opened.add(task.database)
                return Judgement(**response)
        raise NotExecuted(f"{_STARTS} processes exited before they began the statement")

    def start(self) -> subprocess.Popen[bytes]:
        """Start the process unless it runs, and return it.

        Raises:
            NotExecuted: The child is closed.
        """
        with self._lock:
            if self._closed:
                raise NotExecuted(_STOPPED)
            if self.process is None or self.process.poll() is not None:
                self._end()
                bounds = self._bounds
                limits = map(str, (bounds.memory_bytes, bounds.heap_bytes, bounds.value_bytes))
                self.process = subprocess.Popen(  # noqa: S603 - this interpreter and a file of this package
                    [sys.executable, "-I", str(_WORKER), *limits],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.DEVNULL,
                    start_new_session=True,  # Ctrl-C in a terminal is for the server, which ends this process
                )
            return self.process

    def _response(self, process: subprocess.Popen[bytes], line: bytes) -> dict[str, Any] | None:
        """Send a request and return the response; None if the process ended before the statement began.

        Raises:
            _Cut: The process ended while it executed the statement.
        """
        # The operating system ends a process that uses too much processor time. This timer is for one that
        # waits, such as for a disk, and for systems without such limits.
        timer = threading.Timer(2 * self._bounds.seconds + _WAIT_SECONDS, process.kill)
        timer.daemon = True
        timer.start()
        begun = response = b""
        try:
            with contextlib.suppress(OSError):
                _stdin(process).write(line)
                _stdin(process).flush()
                begun = _stdout(process).readline()
                response = _stdout(process).readline()
        finally:
            timer.cancel()
            timer.join()
        if response.endswith(b"\n"):
            judged: dict[str, Any] = json.loads(response)
            return judged
        self.end()
        if begun == BEGUN:
            raise _Cut
        return None

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


class WorkerPool:
    """Child processes that execute statements.

    Environments take turns: each has at most one statement in execution, and its next statement waits for
    those of all other environments that were already waiting.

    Args:
        world: The databases.
        bounds: The limits of a statement.
        count: The number of processes; None for the number of processors, but at least two and at most eight.
    """

    def __init__(self, world: World, bounds: Bounds, count: int | None = None) -> None:
        count = count or min(8, max(2, os.cpu_count() or 1))
        self._children = children = [_Child(bounds) for _ in range(count)]
        self._waiting: FairQueue[_Statement] = FairQueue()
        # Daemon threads, because the program need not wait for a statement at exit.
        self._threads = [
            threading.Thread(target=_serve, args=(self._waiting, child, world), name="sqlgym", daemon=True)
            for child in children
        ]
        self.close = weakref.finalize(self, _end, children, self._waiting)
        """Ends all processes; runs at the latest when this object is collected or the program exits."""

    @property
    def process_ids(self) -> set[int]:
        """The ids of the running processes."""
        processes = [child.process for child in self._children]
        return {process.pid for process in processes if process is not None}

    async def judge(self, task: SqlTask, sql: str, env: Hashable) -> Judgement:
        """Execute a statement and compare its result with that of the task's statement.

        Args:
            task: The task.
            sql: The statement.
            env: The environment that sent it.

        Raises:
            NotExecuted: It could not be executed, for a reason that is not in the statement.
        """
        for thread in self._threads:
            if thread.ident is None:
                thread.start()
        loop = asyncio.get_running_loop()
        judged: asyncio.Future[Judgement] = loop.create_future()
        if not self._waiting.put(env, _Statement(task, sql, loop, judged)):
            raise NotExecuted(_STOPPED)
        return await judged


@dataclass(frozen=True)
class _Statement:
    """A queued statement, and the future for its outcome."""

    task: SqlTask
    sql: str
    loop: asyncio.AbstractEventLoop
    judged: asyncio.Future[Judgement]

    def answer(self, outcome: Judgement | NotExecuted) -> None:
        """Set the outcome. Can be called in any thread."""
        with contextlib.suppress(RuntimeError):  # the loop is closed
            self.loop.call_soon_threadsafe(self._set, outcome)

    def _set(self, outcome: Judgement | NotExecuted) -> None:
        """Set the outcome, unless the caller has stopped waiting. Runs in the thread of the event loop."""
        if self.judged.done():
            return
        if isinstance(outcome, Judgement):
            self.judged.set_result(outcome)
        else:
            self.judged.set_exception(outcome)


def _serve(waiting: FairQueue[_Statement], child: _Child, world: World) -> None:
    """Execute queued statements in one child, until the queue is closed."""
    while (turn := waiting.get()) is not None:
        env, statement = turn
        if not statement.judged.cancelled():
            statement.answer(_outcome(statement, child, world))
        waiting.finish(env)
        if child.process is None:  # the next statement does not wait for a start
            with contextlib.suppress(NotExecuted, OSError):
                child.start()


def _outcome(statement: _Statement, child: _Child, world: World) -> Judgement | NotExecuted:
    database = statement.task.database
    try:
        return child.judge(statement.task, statement.sql, world)
    except _Cut:
        logger.info("a statement on %s was cut, and its process ended", database)
        return Judgement(CUT, right=False)
    except NotExecuted as error:
        logger.warning("a statement on %s could not be executed: %s", database, error)
        return error
    except Exception as error:
        logger.exception("a statement on %s could not be executed", database)
        child.end()
        return NotExecuted(f"{type(error).__name__}: {error}")


def _end(children: list[_Child], waiting: FairQueue[_Statement]) -> None:
    for statement in waiting.close():
        statement.answer(NotExecuted(_STOPPED))
    for child in children:
        child.close()
