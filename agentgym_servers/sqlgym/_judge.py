"""Judges statements: executes each in a child process and compares its rows with the reference's.

The reference is the task's own statement. Only a fingerprint of its rows is kept; the child process computes
the fingerprints (`_statement_runner`).
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import threading
import weakref
from collections.abc import Hashable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from agentgym_servers.sqlgym._fair_queue import FairQueue
from agentgym_servers.sqlgym._statement_process import (
    STOPPED,
    Bounds,
    Execution,
    NotExecuted,
    StatementProcess,
)
from agentgym_servers.sqlgym._statement_runner import MAX_RESULT_BYTES, MAX_ROWS

if TYPE_CHECKING:
    from agentgym_servers.sqlgym._world import SqlTask, SqlWorld

__all__ = ["Judgement", "NoReference", "SqlWorkerPool"]

logger = logging.getLogger("agentgym_servers")

REFERENCE_FACTOR = 2
"""The limits of a reference, as a multiple of an agent's statement.

On a busy machine the same work takes more processor time: a tenth more with three programs per processor, and
up to twice as much where two share the units of one processor.
"""


@dataclass(frozen=True)
class Judgement:
    """The outcome of a statement.

    Attributes:
        state: Its result or its error as text.
        right: Whether its rows equal the reference's.
    """

    state: str
    right: bool


class NoReference(Exception):
    """A task has no rows to compare with: its reference fails, or its database cannot be read."""


class SqlWorkerPool:
    """Child processes that execute statements.

    Environments take turns: each has at most one statement in execution, and its next statement waits for all
    statements of other environments that were already waiting.

    Args:
        world: The databases.
        bounds: The limits of a statement.
        count: The number of processes; None for the number of processors, but at least two and at most eight.
    """

    def __init__(self, world: SqlWorld, bounds: Bounds, count: int | None = None) -> None:
        count = count or min(8, max(2, os.cpu_count() or 1))
        self._children = children = [StatementProcess(bounds) for _ in range(count)]
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
        """Execute a statement and compare its rows with the reference's.

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
            raise NotExecuted(STOPPED)
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

    def __init__(
        self, child: StatementProcess, world: SqlWorld, references: dict[Hashable, Execution]
    ) -> None:
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


def _end(children: list[StatementProcess], waiting: FairQueue[_Statement]) -> None:
    for statement in waiting.close():
        statement.answer(NotExecuted(STOPPED))
    for child in children:
        child.close()
