"""Executes statements in child processes, so that no statement can block or crash the server.

A statement is judged by its rows, which must be those of the task's own statement, the reference. Only a
fingerprint of these is kept, by which later statements are judged.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import signal
import subprocess
import sys
import threading
import weakref
from collections.abc import Hashable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from agentgym_servers.sqlgym._fair_queue import FairQueue
from agentgym_servers.sqlgym._worker import BEGUN, MAX_RESULT_BYTES, MAX_ROWS

if TYPE_CHECKING:
    from agentgym_servers.sqlgym._world import SqlTask, World

__all__ = [
    "CUT",
    "DATA_BOUNDS",
    "MADE_BOUNDS",
    "Bounds",
    "Execution",
    "Judgement",
    "NoReference",
    "NotExecuted",
    "WorkerPool",
]

logger = logging.getLogger("agentgym_servers")

CUT = "interrupted"
"""The result of a statement that was stopped: SQLite's own term."""

_WORKER = Path(__file__).with_name("_worker.py")
_WAIT_SECONDS = 60.0  # beyond the statement's own limit, on a busy machine; starting a process included
_STOPPED = "the worker processes are stopped"
_STARTS = 3  # of processes for one statement, where the earlier ones exit before it begins
_EXIT_SECONDS = 5.0  # for a process to exit after it has closed its output
_KILLED = {-signal.SIGTERM, -getattr(signal, "SIGKILL", signal.SIGTERM)}

REFERENCE_FACTOR = 2
"""The limits of a reference, as a multiple of an agent's statement.

On a busy machine the same work takes more processor time: a tenth more with three programs per processor, and
up to twice as much where two share the units of one processor.
"""


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


@dataclass(frozen=True)
class Judgement:
    """The outcome of a statement.

    Attributes:
        state: Its result or its error as text.
        right: Whether its rows equal those of the reference.
    """

    state: str
    right: bool


class NotExecuted(Exception):
    """A statement could not be executed, for a reason that is not in the statement."""


class NoReference(Exception):
    """A task has no rows to compare with: its reference fails, or its database cannot be read."""


class _Cut(Exception):
    """The statement ended its process."""


class _Child:
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

    def execute(self, database: str, sql: str, world: World, factor: int = 1) -> Execution:
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
            NotExecuted: The child is closed.
        """
        with self._lock:
            if self._closed:
                raise NotExecuted(_STOPPED)
            if self.process is None or self.process.poll() is not None:
                self._end()
                bounds = self.bounds
                limits = map(str, (bounds.memory_bytes, bounds.heap_bytes, bounds.value_bytes))
                self.process = subprocess.Popen(  # noqa: S603 - this interpreter and a file of this package
                    [sys.executable, "-I", str(_WORKER), *limits],
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
        self._references: dict[Hashable, Execution] = {}
        # Daemon threads, because the program need not wait for a statement at exit.
        self._threads = [
            threading.Thread(
                target=_serve,
                args=(self._waiting, _Judge(child, world, self._references)),
                name="sqlgym",
                daemon=True,
            )
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
        """Execute a statement and compare its result with that of the task's reference.

        Args:
            task: The task.
            sql: The statement.
            env: The environment that sent it.

        Raises:
            NoReference: The task cannot be judged.
            NotExecuted: It could not be executed, for a reason that is not in the statement.
        """
        judgement: Judgement = await self._turn(task, sql, env)
        return judgement

    async def check(self, task: SqlTask, env: Hashable) -> None:
        """Execute the reference of a task, unless its rows are known.

        Raises:
            NoReference: The task cannot be judged.
            NotExecuted: The reference could not be executed, for a reason that is not in it.
        """
        known = self._references.get(_key(task))
        if known is None or not known.fingerprint:
            await self._turn(task, None, env)

    async def _turn(self, task: SqlTask, sql: str | None, env: Hashable) -> Any:
        for thread in self._threads:
            if thread.ident is None:
                thread.start()
        loop = asyncio.get_running_loop()
        judged: asyncio.Future[Judgement | None] = loop.create_future()
        if not self._waiting.put(env, _Statement(task, sql, loop, judged)):
            raise NotExecuted(_STOPPED)
        return await judged


@dataclass(frozen=True)
class _Statement:
    """A queued statement, and the future for its outcome.

    Attributes:
        sql: The statement; None if only the reference is executed.
    """

    task: SqlTask
    sql: str | None
    loop: asyncio.AbstractEventLoop
    judged: asyncio.Future[Judgement | None]

    def answer(self, outcome: Judgement | Exception | None) -> None:
        """Set the outcome. Can be called in any thread."""
        with contextlib.suppress(RuntimeError):  # the loop is closed
            self.loop.call_soon_threadsafe(self._set, outcome)

    def _set(self, outcome: Judgement | Exception | None) -> None:
        """Set the outcome, unless the caller has stopped waiting. Runs in the thread of the event loop."""
        if self.judged.done():
            return
        if isinstance(outcome, Exception):
            self.judged.set_exception(outcome)
        else:
            self.judged.set_result(outcome)


class _Judge:
    """Judges statements in one child, by references that all children share.

    Args:
        child: The child.
        world: The databases.
        references: The results of references that need no other execution, by `_key`.
    """

    def __init__(self, child: _Child, world: World, references: dict[Hashable, Execution]) -> None:
        self.child = child
        self._world = world
        self._references = references

    def outcome(self, task: SqlTask, sql: str | None) -> Judgement | Exception | None:
        """Return the judgement on a statement, or why there is none; None if only the reference was due."""
        try:
            expected = self._reference(task)
            if sql is None:
                return None
            execution = self.child.execute(task.database, sql, self._world)
            if execution.failure == "database":
                raise NoReference(_unreadable(task, execution))
            return Judgement(execution.state, right=execution.fingerprint == expected)
        except NoReference as error:
            return error
        except NotExecuted as error:
            logger.warning("a statement on %s could not be executed: %s", task.database, error)
            return error
        except Exception as error:
            logger.exception("a statement on %s could not be executed", task.database)
            self.child.end()
            return NotExecuted(f"{type(error).__name__}: {error}")

    def _reference(self, task: SqlTask) -> str:
        """Return the fingerprint of the rows that the reference returns.

        Raises:
            NoReference: It fails, or it is empty.
        """
        reference = self._references.get(_key(task))
        if reference is None:
            reference = self.child.execute(task.database, task.sql, self._world, REFERENCE_FACTOR)
            # A statement that fails at once is executed again: its file may have been repaired.
            if not reference.volatile and reference.failure in {"", "limit"}:
                self._references[_key(task)] = reference
        if reference.failure == "database":
            raise NoReference(_unreadable(task, reference))
        if reference.failure == "limit":
            raise NoReference(
                f"its reference statement exceeds a limit ({reference.state}): "
                f"{REFERENCE_FACTOR * self.child.bounds.seconds:g} s of processor time, {MAX_ROWS:,} rows, "
                f"{MAX_RESULT_BYTES:,} bytes of result, {self.child.bounds.heap_bytes:,} bytes of memory"
            )
        if reference.failure:
            raise NoReference(
                f"its reference statement fails on the database {task.database}: {reference.state}"
            )
        if not reference.fingerprint:
            raise NoReference("its reference statement is empty")
        return reference.fingerprint


def _key(task: SqlTask) -> Hashable:
    return task.database, task.sql


def _unreadable(task: SqlTask, execution: Execution) -> str:
    return f"its database {task.database} cannot be read: {execution.state}"


def _serve(waiting: FairQueue[_Statement], judge: _Judge) -> None:
    """Judge queued statements in one child, until the queue is closed."""
    while (turn := waiting.get()) is not None:
        env, statement = turn
        if not statement.judged.cancelled():
            statement.answer(judge.outcome(statement.task, statement.sql))
        waiting.finish(env)
        if judge.child.process is None:  # the next statement does not wait for a start
            with contextlib.suppress(NotExecuted, OSError):
                judge.child.start()


def _end(children: list[_Child], waiting: FairQueue[_Statement]) -> None:
    for statement in waiting.close():
        statement.answer(NotExecuted(_STOPPED))
    for child in children:
        child.close()
