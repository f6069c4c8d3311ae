"""What the benchmarks share: a slow server in a process of its own, bars, and how a result is printed."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

__all__ = ["at_least", "at_most", "report", "seconds", "slow_server", "usually"]

T = TypeVar("T")


def usually(number: T, *, quick: T) -> T:
    """Return a number, or a smaller one for ``--quick``, which shows that a benchmark runs and no more."""
    return quick if "--quick" in sys.argv else number


@contextmanager
def slow_server(median: float, *more: float) -> Iterator[str]:
    """Run the server of ``_server.py`` with these arguments; yields its URL."""
    command = [sys.executable, str(Path(__file__).with_name("_server.py")), *map(str, (median, *more))]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:  # noqa: S603
        if server.stdout is None or server.stdin is None:
            raise RuntimeError("the server has no pipes")
        try:
            yield f"http://127.0.0.1:{int(server.stdout.readline())}"
        finally:
            server.stdin.close()  # it ends with its input


def at_most(ratio: float, bar: float) -> dict[str, object]:
    """Return what is printed of a ratio that is to be small."""
    return {"ratio": round(ratio, 3), "at_most": bar, "met": ratio <= bar}


def at_least(ratio: float, bar: float) -> dict[str, object]:
    """Return what is printed of a ratio that is to be large."""
    return {"ratio": round(ratio, 2), "at_least": bar, "met": ratio >= bar}


def report(**result: object) -> None:
    """Print a result as one line of JSON."""
    print(json.dumps(result))


def seconds(act: Callable[[], object]) -> float:
    """Return how long something takes."""
    began = time.perf_counter()
    act()
    return time.perf_counter() - began
