"""A Ctrl-C at each point of an operation at which one may come.

The points of an operation are found by running it once without an interrupt::

    points = points_of(operation)
    for point in spread(points, 50):
        if interrupted(operation, point):
            ...  # whatever was interrupted must go on to work

A point is named by its place in the source and not by a running number: a line that is added, or one that is
executed once more in the next run, moves no other point.
"""

from __future__ import annotations

import asyncio
import dis
import functools
import sys
from collections import Counter
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, NamedTuple

import agentgym_gym

PACKAGE = str(Path(agentgym_gym.__file__).parent)


class Point(NamedTuple):
    """A point at which a Ctrl-C may come: just before a line is executed for the n-th time.

    Attributes:
        file: The path of the source.
        line: The number of the line.
        visit: How often the line is reached up to then, from 1.
    """

    file: str
    line: int
    visit: int

    def __str__(self) -> str:
        return f"{Path(self.file).name}:{self.line} ({self.visit})"


def points_of(operation: Callable[[], object], *, within: str | None = PACKAGE) -> list[Point]:
    """Run an operation and return the points it passes in this thread, in their order.

    Args:
        operation: What is run, once.
        within: The folder whose files count; None for all Python code.
    """
    points: list[Point] = []
    _trace(operation, points.append, within)
    return points


def interrupted(operation: Callable[[], object], point: Point) -> bool:
    """Run an operation with a Ctrl-C at a point; return whether it passed there."""
    came = False

    def interrupt(here: Point) -> None:
        nonlocal came
        if here == point:
            came = True
            raise KeyboardInterrupt

    try:
        _trace(operation, interrupt, point.file)
    except KeyboardInterrupt:
        return True
    return came  # the operation may have kept the interrupt to itself


def spread(points: Sequence[Point], number: int) -> list[Point]:
    """Return so many of the points, evenly apart, with the first and the last; all if there are fewer."""
    if len(points) <= number:
        return list(points)
    return [points[round(index * (len(points) - 1) / (number - 1))] for index in range(number)]


def run_as_asyncio(loop: asyncio.AbstractEventLoop, work: Coroutine[Any, Any, Any]) -> Any:
    """Run a coroutine as `asyncio.run` does: when a Ctrl-C comes, the task is cancelled before it goes on."""
    task = loop.create_task(work)
    try:
        return loop.run_until_complete(task)
    except KeyboardInterrupt:
        task.cancel()
        loop.run_until_complete(asyncio.gather(task, return_exceptions=True))
        raise


def _leaves_a_with(frame: FrameType) -> bool:
    """Whether the line is that of a `with` whose body is over.

    Python looks for a Ctrl-C nowhere between the body and the call of `__exit__`, so that a lock is let go.
    """
    entered = _with_statements(frame.f_code).get(frame.f_lineno)
    return entered is not None and frame.f_lasti > entered


@functools.cache
def _with_statements(code: CodeType) -> dict[int, int]:
    """Return the lines of a function on which a `with` begins, and where in its bytecode it is entered."""
    entered: dict[int, int] = {}
    starts = list(dis.findlinestarts(code))
    for instruction in dis.get_instructions(code):
        if instruction.opname in ENTER_A_WITH:
            line = next(line for offset, line in reversed(starts) if offset <= instruction.offset)
            if line is not None:
                entered[line] = instruction.offset
    return entered


ENTER_A_WITH = {"BEFORE_WITH", "BEFORE_ASYNC_WITH", "SETUP_WITH", "SETUP_ASYNC_WITH", "LOAD_SPECIAL"}
"""From Python 3.10 to 3.14."""


def _trace(operation: Callable[[], object], passed: Callable[[Point], None], within: str | None) -> None:
    visits: Counter[tuple[str, int]] = Counter()

    def trace(frame: FrameType, event: str, argument: object) -> Any:
        if event == "call":
            return trace if within is None or frame.f_code.co_filename.startswith(within) else None
        if event == "line" and not _leaves_a_with(frame):
            place = frame.f_code.co_filename, frame.f_lineno
            visits[place] += 1
            passed(Point(*place, visits[place]))
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        operation()
    finally:
        sys.settrace(before)
