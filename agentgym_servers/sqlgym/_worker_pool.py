"""Executes statements in child processes, so that no statement can block or crash the server."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import queue
import subprocess
import sys
import threading
import weakref
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agentgym_servers.sqlgym._worker import BEGUN

if TYPE_CHECKING:
    from agentgym_servers.sqlgym._world import SqlTask, World

__all__ = ["CUT", "DATA_BOUNDS", "MADE_BOUNDS", "Bounds", "Judgement", "WorkerPool"]

logger = logging.getLogger("agentgym_servers")

CUT = "interrupted"
"""The result of a statement that was stopped: SQLite's own term."""

_WORKER = Path(__file__).with_name("_worker.py")
_START_SECONDS = 30.0  # the time limit for starting a process on a busy machine and opening a database


@dataclass(frozen=True)
class Bounds:
    """The limits of a statement.

    Attributes:
        steps: Steps of SQLite's virtual machine.
        seconds: Seconds of processor time; the statement with the right answer has the same limit.
        heap_bytes: Memory of SQLite.
        memory_bytes: Address space of the process.
    """

    steps: int
    seconds: float
    heap_bytes: int
    memory_bytes: int


MADE_BOUNDS = Bounds(steps=20_000_000, seconds=2, heap_bytes=64_000_000, memory_bytes=512_000_000)
"""The limits for generated databases, of some hundred rows.

A statement reaches the limit of steps first, so that the outcome does not depend on the machine.
"""

DATA_BOUNDS = Bounds(steps=10**15, seconds=30, heap_bytes=512_000_000, memory_bytes=2_000_000_000)
"""The limits for BIRD's databases: the same number of seconds as in BIRD's own evaluation."""


@dataclass(frozen=True)
class Judgement:
    """The outcome of a statement.

    Attributes:
        state: Its result or its error as text.
        right: Whether its rows equal those of the right answer.
    """

    state: str
    right: bool


class _Cut(Exception):
    """The process exited, or was killed, before it responded."""


class _Child:
    """A process that executes statements; it starts on first use and restarts after each exit."""

    def __init__(self, bounds: Bounds) -> None:
        self._bounds = bounds
        self.process: subprocess.Popen[bytes] | None = None
        self._opened: set[str] = set()
        self._used = False  # whether the process has received a request

    def judge(self, task: SqlTask, sql: str, world: World) -> Judgement:
        """Execute a statement and compare its result with that of the task's statement.

        Raises:
            _Cut: The statement exceeded its limits, and the process was ended.
        """
        request: dict[str, Any] = {
            "database": task.database,
            "sql": sql,
            "right": task.sql,
            "steps": self._bounds.steps,
            "seconds": self._bounds.seconds,
        }
        response: dict[str, Any] | None = None
        while response is None:
            process = self._running()
            opens = task.database not in self._opened
            request["open"] = asdict(world.source(task.database)) if opens else None
            response = self._response(process, json.dumps(request).encode("ascii") + b"\n")
        self._opened.add(task.database)
        return Judgement(**response)

    def _running(self) -> subprocess.Popen[bytes]:
        if self.process is None or self.process.poll() is not None:
            self.end()
            bounds = self._bounds
            self.process = subprocess.Popen(  # noqa: S603 - this interpreter and a file of this package
                [sys.executable, "-I", str(_WORKER), str(bounds.memory_bytes), str(bounds.heap_bytes)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                start_new_session=True,  # Ctrl-C in a terminal is for the server, which ends this process
            )
        return self.process

    def _response(self, process: subprocess.Popen[bytes], line: bytes) -> dict[str, Any] | None:
        """Send a request and return the response; None if the process had exited earlier for other reasons.

        Raises:
            _Cut: The process ended because of this request.
        """
        # The worker stops statements itself; this timer is for those it cannot stop, such as a long function
        # call.
        late, fresh = threading.Event(), not self._used
        self._used = True

        def end() -> None:
            late.set()
            process.kill()

        timer = threading.Timer(2 * self._bounds.seconds + _START_SECONDS, end)
        timer.daemon = True
        timer.start()
        begun = answer = b""
        try:
            with contextlib.suppress(OSError):
                _stdin(process).write(line)
                _stdin(process).flush()
                begun = _stdout(process).readline()
                answer = _stdout(process).readline()
        finally:
            timer.cancel()
            timer.join()
        if late.is_set() or not answer.endswith(b"\n"):
            self.end()
            if fresh or late.is_set() or begun == BEGUN:
                raise _Cut
            return None
        response: dict[str, Any] = json.loads(answer)
        return response

    def end(self) -> None:
        """End the process if it runs."""
        process, self.process = self.process, None
        self._opened, self._used = set(), False
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
    """Child processes that execute statements; a statement waits until one of them is free.

    Args:
        world: The databases.
        bounds: The limits of a statement.
        count: The number of processes; None for the number of processors, but at least two and at most eight.
    """

    def __init__(self, world: World, bounds: Bounds, count: int | None = None) -> None:
        count = count or min(8, max(2, os.cpu_count() or 1))
        self._children = children = [_Child(bounds) for _ in range(count)]
        self._waiting: queue.SimpleQueue[_Statement | None] = queue.SimpleQueue()
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
        return {child.process.pid for child in self._children if child.process is not None}

    async def judge(self, task: SqlTask, sql: str) -> Judgement:
        """Execute a statement and compare its result with that of the task's statement."""
        for thread in self._threads:
            if thread.ident is None:
                thread.start()
        loop = asyncio.get_running_loop()
        judged: asyncio.Future[Judgement] = loop.create_future()
        self._waiting.put(_Statement(task, sql, loop, judged))
        return await judged


@dataclass(frozen=True)
class _Statement:
    """A queued statement, and the future for its outcome."""

    task: SqlTask
    sql: str
    loop: asyncio.AbstractEventLoop
    judged: asyncio.Future[Judgement]

    def answer(self, judgement: Judgement) -> None:
        """Set the outcome, unless the caller has stopped waiting. Runs in the thread of the event loop."""
        if not self.judged.done():
            self.judged.set_result(judgement)


def _serve(waiting: queue.SimpleQueue[_Statement | None], child: _Child, world: World) -> None:
    """Execute queued statements in one child, until the queue returns None."""
    while (statement := waiting.get()) is not None:
        if statement.judged.cancelled():
            continue
        try:
            judgement = child.judge(statement.task, statement.sql, world)
        except _Cut:
            logger.info("a statement on %s was cut, and its process ended", statement.task.database)
            judgement = Judgement(CUT, right=False)
        except Exception:
            logger.exception("a statement on %s could not be judged", statement.task.database)
            child.end()
            judgement = Judgement(CUT, right=False)
        with contextlib.suppress(RuntimeError):  # the loop is closed
            statement.loop.call_soon_threadsafe(statement.answer, judgement)


def _end(children: list[_Child], waiting: queue.SimpleQueue[_Statement | None]) -> None:
    for child in children:
        waiting.put(None)
        child.end()
