"""A Ctrl-C at each point of an operation at which one may come.

The points of an operation are found by running it once without an interrupt::

    points = points_of(operation)
    for point in spread(points, 50):
        if interrupted(operation, point):
            ...  # the interrupted object must continue to work

Python runs the handler of a signal between two instructions: at the start of a function, when a generator is
resumed, after a call, and when a loop starts again. All of these are points, also the one between the return
of ``recv`` and the assignment of its result. A point is named by its place in the code and not by a running
number: a line that is added, or one that is executed once more in the next run, moves no other point.
"""

from __future__ import annotations

import asyncio
import contextlib
import dis
import functools
import itertools
import sys
from collections import Counter
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, NamedTuple

import agentgym_gym

PACKAGE = str(Path(agentgym_gym.__file__).parent)


class Point(NamedTuple):
    """A point at which a Ctrl-C may come: just before an instruction is executed for the n-th time.

    Attributes:
        file: The path of the source.
        function: The name of the function.
        line: The number of the line.
        offset: The offset of the instruction in the function's bytecode.
        visit: How often the instruction was a point up to then, from 1.
    """

    file: str
    function: str
    line: int
    offset: int
    visit: int

    def __str__(self) -> str:
        return f"{Path(self.file).name}:{self.line} {self.function} @{self.offset} ({self.visit})"


def points_of(operation: Callable[[], object], *, within: str | None = PACKAGE) -> list[Point]:
    """Run an operation and return the points it passes in this thread, in their order.

    Args:
        operation: The operation; it is run once.
        within: The folder whose files count; None for all Python code.
    """
    points: list[Point] = []
    _trace(operation, points.append, within)
    return points


def ctrl_c() -> None:
    """Do what Python's own handler of SIGINT does.

    Raises:
        KeyboardInterrupt: Always.
    """
    raise KeyboardInterrupt


def interrupted(
    operation: Callable[[], object], point: Point, handler: Callable[[], object] = ctrl_c
) -> bool:
    """Run an operation with a signal at a point; return whether it passed there.

    Args:
        operation: The operation.
        point: The point.
        handler: The handler of the signal.
    """
    came = False

    def interrupt(here: Point) -> None:
        nonlocal came
        if here == point:
            came = True
            handler()

    try:
        _trace(operation, interrupt, point.file)
    except KeyboardInterrupt:
        return True
    return came  # the operation may have kept the interrupt to itself


def spread(points: Sequence[Point], number: int) -> list[Point]:
    """Return N of the points, evenly apart, with the first and the last; all if there are fewer."""
    if len(points) <= number:
        return list(points)
    return [points[round(index * (len(points) - 1) / (number - 1))] for index in range(number)]


def run_as_asyncio(
    loop: asyncio.AbstractEventLoop, work: Coroutine[Any, Any, Any] | asyncio.Task[Any]
) -> Any:
    """Run a coroutine or task as `asyncio.run` does: a Ctrl-C cancels the task before it continues."""
    task = work if isinstance(work, asyncio.Task) else loop.create_task(work)
    try:
        return loop.run_until_complete(task)
    except KeyboardInterrupt:
        while left := asyncio.all_tasks(loop):
            for each in left:
                each.cancel()
            # An inner task that the Ctrl-C ended raises it once more when its result is awaited.
            with contextlib.suppress(KeyboardInterrupt):
                loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
        raise


@functools.cache
def _after_calls(code: CodeType) -> frozenset[int]:
    """Return the offsets of the instructions that follow a call and are in the same ``try`` or ``with``.

    Python raises a signal's exception at the call. The tracer can raise it only at the next instruction,
    which may be outside of the ``with`` whose body ends with the call.
    """
    instructions = list(dis.get_instructions(code))
    return frozenset(
        following.offset
        for call, following in itertools.pairwise(instructions)
        if call.opname.startswith("CALL")
        and not call.opname.startswith("CALL_INTRINSIC")
        and _handler(code, call.offset) == _handler(code, following.offset)
    )


def _handler(code: CodeType, offset: int) -> int | None:
    """Return the offset of the exception handler of an instruction; None without one, or on Python 3.10."""
    entries = getattr(dis.Bytecode(code), "exception_entries", ())
    return next((each.target for each in entries if each.start <= offset < each.end), None)


def _trace(operation: Callable[[], object], passed: Callable[[Point], None], within: str | None) -> None:
    visits: Counter[tuple[CodeType, int]] = Counter()

    def trace(frame: FrameType, event: str, argument: object) -> Any:
        code = frame.f_code
        if event == "call":
            if within is not None and not code.co_filename.startswith(within):
                return None
            frame.f_trace_opcodes = True
            frame.f_trace_lines = False
            return _Tracer(code, visits, passed)
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        operation()
    finally:
        sys.settrace(before)


class _Tracer:
    """Traces the instructions of one run of a function, or of one part of it between two yields."""

    def __init__(
        self, code: CodeType, visits: Counter[tuple[CodeType, int]], passed: Callable[[Point], None]
    ) -> None:
        self._code, self._visits, self._passed = code, visits, passed
        self._last = sys.maxsize  # the first instruction is a point, too

    def __call__(self, frame: FrameType, event: str, argument: object) -> _Tracer:
        if event == "opcode":
            offset, last, code = frame.f_lasti, self._last, self._code
            self._last = offset
            if offset <= last or offset in _after_calls(code):
                self._visits[code, offset] += 1
                name = getattr(code, "co_qualname", code.co_name)
                line, visit = frame.f_lineno or code.co_firstlineno, self._visits[code, offset]
                self._passed(Point(code.co_filename, name, line, offset, visit))
        return self
