"""The process that executes statements for the SQLGym server; it imports only the standard library.

It reads requests from standard input and writes responses to standard output, each as a line of JSON, and
exits at the end of its input. This module limits each statement: it may only read, may call only harmless
functions, and has a maximum number of steps of SQLite's virtual machine, processor time and memory. A
statement that evades these limits is stopped from outside: the operating system ends the process at its limit
of processor time, or the parent process kills it.
"""

from __future__ import annotations

import contextlib
import json
import sqlite3
import sys
import time
from typing import Any

try:
    import resource
except ImportError:  # on Windows, where only the parent's time limit applies
    resource = None  # type: ignore[assignment]

__all__ = ["BEGUN", "MAX_RESULT_BYTES", "MAX_ROWS", "SHOWN", "STEPS_A_CALL", "StatementRunner", "main"]

MAX_ROWS = 100_000
"""The maximum number of rows of a result."""

MAX_RESULT_BYTES = 32_000_000
"""The maximum size of a result: characters of text and bytes of blobs."""

BEGUN = b"begun\n"
"""Sent before a statement is executed, so that the parent attributes a later crash to the statement."""

STEPS_A_CALL = 1_000
"""The number of virtual machine steps between two calls of SQLite's progress handler."""

SHOWN = 100
"""The number of characters of a result that are returned, as on AgentGym's server."""

# From https://www.sqlite.org/c3ref/c_alter_table.html; `sqlite3` does not define all of them.
_READ, _SELECT, _FUNCTION, _RECURSIVE = 20, 21, 31, 33

_NAMES = """
abs acos acosh asin asinh atan atan2 atanh avg ceil ceiling char coalesce concat concat_ws cos cosh count
cume_dist current_date current_time current_timestamp date datetime degrees dense_rank exp first_value
floor format glob group_concat hex ifnull iif instr julianday lag last_value lead length like likelihood
likely ln log log10 log2 lower ltrim max min mod nth_value ntile nullif octet_length percent_rank pi pow
power printf quote radians random rank replace round row_number rtrim sign sin sinh soundex sqrt strftime
string_agg substr substring sum tan tanh time timediff total trim trunc typeof unhex unicode unixepoch
unlikely upper -> ->> json json_array json_array_length json_extract json_group_array json_group_object
json_object json_type json_valid
"""

_FUNCTIONS = frozenset(_NAMES.split())
"""The functions that a statement may call: only those known to be harmless."""


class _Budget:
    """The remaining steps and processor time of a statement."""

    def __init__(self) -> None:
        self.calls = 0
        self.until = 0.0

    def begin(self, steps: int, seconds: float) -> None:
        """Start counting."""
        self.calls = steps // STEPS_A_CALL
        self.until = time.process_time() + seconds  # not wall-clock time: the machine may be busy

    def spent(self) -> bool:
        """Return whether the budget is used up; SQLite's progress handler."""
        self.calls -= 1
        return self.calls < 0 or time.process_time() > self.until


def _allowed(action: int, _: str | None, function: str | None, *_more: object) -> int:
    """Allow or deny one action of a statement; SQLite's authorizer, called before the execution."""
    if action == _FUNCTION:
        return sqlite3.SQLITE_OK if (function or "").lower() in _FUNCTIONS else sqlite3.SQLITE_DENY
    return sqlite3.SQLITE_OK if action in {_READ, _SELECT, _RECURSIVE} else sqlite3.SQLITE_DENY


class StatementRunner:
    """Executes statements, one after the other.

    Args:
        heap_bytes: The maximum amount of memory for SQLite.
    """

    def __init__(self, heap_bytes: int) -> None:
        self._heap_bytes = heap_bytes
        self._open: dict[str, sqlite3.Connection] = {}
        self._budget = _Budget()

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        """Handle a request: return the result of a statement as text, and whether it is the right one."""
        if request.get("open"):
            self._open[request["database"]] = self._opened(**request["open"])
        connection = self._open[request["database"]]
        limits = request["steps"], request["seconds"]
        result = self._rows(connection, request["sql"], *limits)
        if isinstance(result, str):
            return {"state": _cut(result), "right": False}
        rows, has_statement = result
        right = self._rows(connection, request["right"], *limits) if has_statement else ""
        return {"state": _shown(rows), "right": not isinstance(right, str) and set(rows) == set(right[0])}

    def _opened(self, script: str | None, path: str | None) -> sqlite3.Connection:
        connection = sqlite3.connect(path or ":memory:", uri=path is not None, isolation_level=None)
        if script:
            connection.executescript(script)
        for pragma in ("query_only = 1", "temp_store = MEMORY", f"hard_heap_limit = {self._heap_bytes}"):
            connection.execute(f"PRAGMA {pragma}")
        if sys.version_info >= (3, 11):
            connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MAX_RESULT_BYTES)
            connection.setlimit(sqlite3.SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 1_000)
            connection.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
        connection.set_progress_handler(self._budget.spent, STEPS_A_CALL)
        connection.set_authorizer(_allowed)
        return connection

    def _rows(
        self, connection: sqlite3.Connection, sql: str, steps: int, seconds: float
    ) -> tuple[list[tuple[Any, ...]], bool] | str:
        """Return the rows of a result and whether the statement is not empty; or the text of an error."""
        self._budget.begin(steps, seconds)
        _allow_processor_seconds(seconds)
        rows: list[tuple[Any, ...]] = []
        size = 0
        try:
            with contextlib.closing(connection.cursor()) as cursor:
                for row in cursor.execute(sql):
                    rows.append(row)
                    size += sum(len(value) for value in row if isinstance(value, str | bytes))
                    if len(rows) > MAX_ROWS or size > MAX_RESULT_BYTES:
                        return "the result is too large"
                return rows, cursor.description is not None
        except MemoryError:
            rows.clear()
            return "out of memory"
        except Exception as error:  # noqa: BLE001 - any failure of a statement is its result
            return str(error)


def _shown(rows: list[tuple[Any, ...]]) -> str:
    """Return the text of a result; from its first rows only, as each has more than one character."""
    return _cut(str(rows[: SHOWN + 1]))


def _cut(text: str) -> str:
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}..."


def _allow_processor_seconds(seconds: float) -> None:
    """Make the operating system end this process if the next statement exceeds its processor time."""
    if resource is not None:
        usage = resource.getrusage(resource.RUSAGE_SELF)
        most = resource.getrlimit(resource.RLIMIT_CPU)[1]
        until = int(usage.ru_utime + usage.ru_stime + seconds) + 1
        resource.setrlimit(resource.RLIMIT_CPU, (until, most))


def main() -> None:
    """Handle requests until the input ends."""
    memory_bytes, heap_bytes = map(int, sys.argv[1:])
    if resource is not None:
        resource.setrlimit(resource.RLIMIT_AS, (memory_bytes, memory_bytes))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
    runner = StatementRunner(heap_bytes)
    for line in sys.stdin.buffer:
        _write(BEGUN)
        _write(json.dumps(runner.answer(json.loads(line))).encode("ascii") + b"\n")


def _write(line: bytes) -> None:
    sys.stdout.buffer.write(line)
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
