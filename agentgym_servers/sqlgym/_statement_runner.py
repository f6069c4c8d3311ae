"""The process that executes statements for the SQLGym server; it imports only the standard library.

It reads requests from standard input and writes responses to standard output, each as a line of JSON, and
exits at the end of its input. This module limits each statement: it may only read, may call only harmless
functions, and has a maximum number of steps of SQLite's virtual machine, processor time, memory, and length
of one value. SQLite checks time and steps only between two steps, so the operating system ends this process
if a single step takes too long. Where it cannot (on Windows), the parent process kills this one.

A response has the fields of `_statement_process.Execution`.

Python 3.10 cannot set SQLite's own limits: there, only memory and processor time limit the length of a value.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import signal
import sqlite3
import sys
import time
from typing import Any

try:
    import resource
except ImportError:  # on Windows
    resource = None  # type: ignore[assignment]

__all__ = [
    "BEGUN",
    "GRACE_SECONDS",
    "MAX_RESULT_BYTES",
    "MAX_ROWS",
    "SHOWN",
    "STEPS_A_CALL",
    "StatementRunner",
    "main",
]

MAX_ROWS = 100_000
"""The maximum number of rows of a result."""

MAX_RESULT_BYTES = 32_000_000
"""The maximum size of a result: characters of text and bytes of blobs."""

BEGUN = b"begun\n"
"""Sent when the database is open and the statement is next: a later crash is due to the statement."""

STEPS_A_CALL = 1_000
"""The number of virtual machine steps between two calls of SQLite's progress handler."""

GRACE_SECONDS = 0.1
"""The processor time between the limit at which SQLite interrupts, and the end of this process."""

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

_OUT_OF_MEMORY = "out of memory"  # SQLite's own term

_FUNCTIONS = frozenset(_NAMES.split())
"""The functions that a statement may call: only those known to be harmless."""

_CLOCK = (
    "current_date current_time current_timestamp date datetime julianday strftime time timediff unixepoch"
)

_VOLATILE = frozenset([*_CLOCK.split(), "random"])
"""The functions whose results may change from one execution to the next."""

# SQLite's messages about a file, which no statement causes.
_BROKEN_FILE = (
    "attempt to write a readonly database",  # a log next to the file must be replayed
    "database disk image is malformed",
    "database is locked",
    "disk I/O error",
    "file is not a database",
    "locking protocol",
    "malformed database schema",
    "unable to open database file",
)


class _Budget:
    """The remaining steps and processor time of a statement."""

    def __init__(self) -> None:
        self.calls = 0
        self.until = 0.0
        self.exceeded = False

    def begin(self, steps: int, seconds: float) -> None:
        """Start counting."""
        self.exceeded = False
        self.calls = steps // STEPS_A_CALL
        self.until = time.process_time() + seconds  # not wall-clock time: the machine may be busy

    def spent(self) -> bool:
        """Return whether the budget is used up; SQLite's progress handler."""
        self.calls -= 1
        self.exceeded = self.calls < 0 or time.process_time() > self.until
        return self.exceeded


class StatementRunner:
    """Executes statements, one after the other.

    Args:
        heap_bytes: The maximum amount of memory for SQLite.
        value_bytes: The maximum length of one value; 0 for SQLite's own limit.
    """

    def __init__(self, heap_bytes: int, value_bytes: int) -> None:
        self._heap_bytes = heap_bytes
        self._value_bytes = value_bytes
        self._open: dict[str, sqlite3.Connection] = {}
        self._budget = _Budget()
        self._volatile = False

    def open(self, request: dict[str, Any]) -> str:
        """Open the database of a request, if the request has its source; return the error, if any."""
        try:
            if request.get("open"):
                self._open[request["database"]] = self._opened(**request["open"])
        except sqlite3.Error as error:
            return str(error)
        return ""

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        """Execute a statement: return its result as text, and the fingerprint of its rows."""
        try:
            return self._answer(request)
        except MemoryError:
            return _failed(_OUT_OF_MEMORY, "limit")

    def _answer(self, request: dict[str, Any]) -> dict[str, Any]:
        self._volatile = False
        connection = self._open[request["database"]]
        result = self._rows(connection, request["sql"], request["steps"], request["seconds"])
        if isinstance(result, dict):
            return result
        rows, has_statement = result
        return {
            "state": _shown(rows),
            "fingerprint": _fingerprint(rows) if has_statement else "",
            "failure": "",
            "volatile": self._volatile,
        }

    def _allowed(self, action: int, _: str | None, function: str | None, *_more: object) -> int:
        """Allow or deny one action of a statement; SQLite's authorizer, called before the execution."""
        if action == _FUNCTION:
            name = (function or "").lower()
            self._volatile = self._volatile or name in _VOLATILE
            return sqlite3.SQLITE_OK if name in _FUNCTIONS else sqlite3.SQLITE_DENY
        return sqlite3.SQLITE_OK if action in {_READ, _SELECT, _RECURSIVE} else sqlite3.SQLITE_DENY

    def _opened(self, script: str | None, path: str | None) -> sqlite3.Connection:
        connection = sqlite3.connect(
            path or ":memory:",
            uri=path is not None,
            isolation_level=None,
            cached_statements=0,  # the authorizer would not see a statement again
        )
        if script:
            connection.executescript(script)
        for pragma in ("query_only = 1", "temp_store = MEMORY", f"hard_heap_limit = {self._heap_bytes}"):
            connection.execute(f"PRAGMA {pragma}")
        if sys.version_info >= (3, 11):
            if self._value_bytes:
                connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, self._value_bytes)
            connection.setlimit(sqlite3.SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 1_000)
            connection.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
        connection.set_progress_handler(self._budget.spent, STEPS_A_CALL)
        connection.set_authorizer(self._allowed)
        return connection

    def _rows(
        self, connection: sqlite3.Connection, sql: str, steps: int, seconds: float
    ) -> tuple[list[tuple[Any, ...]], bool] | dict[str, Any]:
        """Return the rows of a result and whether the statement is not empty; or the failed response."""
        self._budget.begin(steps, seconds)
        _limit_processor_time(seconds + GRACE_SECONDS)
        rows: list[tuple[Any, ...]] = []
        size = 0
        try:
            with contextlib.closing(connection.cursor()) as cursor:
                for row in cursor.execute(sql):
                    rows.append(row)
                    size += sum(len(value) for value in row if isinstance(value, str | bytes))
                    if len(rows) > MAX_ROWS or size > MAX_RESULT_BYTES:
                        return _failed("the result is too large", "limit")
                return rows, cursor.description is not None
        except MemoryError:
            rows.clear()
            return _failed(_OUT_OF_MEMORY, "limit")
        except Exception as error:  # noqa: BLE001 - any failure of a statement is its result
            if self._budget.exceeded:
                return _failed(str(error), "limit")
            broken = isinstance(error, sqlite3.Error) and str(error).startswith(_BROKEN_FILE)
            return _failed(str(error), "database" if broken else "statement")
        finally:
            _limit_processor_time(0)  # the time until the next statement is not limited


def _failed(error: str, kind: str) -> dict[str, Any]:
    """Return the response to a statement that failed."""
    return {"state": _cut(error), "fingerprint": "", "failure": kind, "volatile": False}


def _fingerprint(rows: list[tuple[Any, ...]]) -> str:
    """Return a text that is the same for the same set of rows, where 90 and 90.0 are the same."""
    texts = {repr(tuple(map(_whole, row))) for row in rows}
    return hashlib.sha256("\n".join(sorted(texts)).encode("utf-8", "surrogatepass")).hexdigest()


def _whole(value: Any) -> Any:
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _shown(rows: list[tuple[Any, ...]]) -> str:
    """Return the text of a result; from its first rows only, as each has more than one character."""
    return _cut(str(rows[: SHOWN + 1]))


def _cut(text: str) -> str:
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}..."


def _limit_processor_time(seconds: float) -> None:
    """Make the operating system end this process after this much more processor time; 0 for no limit."""
    if resource is not None:
        signal.setitimer(signal.ITIMER_PROF, seconds)


def main() -> None:
    """Handle requests until the input ends."""
    memory_bytes, heap_bytes, value_bytes = map(int, sys.argv[1:])
    if resource is not None:
        resource.setrlimit(resource.RLIMIT_AS, (memory_bytes, memory_bytes))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
        signal.signal(signal.SIGPROF, signal.SIG_DFL)  # the parent may ignore or block it
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGPROF})
    runner = StatementRunner(heap_bytes, value_bytes)
    for line in sys.stdin.buffer:
        request = json.loads(line)
        error = runner.open(request)
        _write(BEGUN)
        response = _failed(error, "database") if error else runner.answer(request)
        _write(json.dumps(response).encode("ascii") + b"\n")


def _write(line: bytes) -> None:
    sys.stdout.buffer.write(line)
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
