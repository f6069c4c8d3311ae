"""Common parts of the benchmarks: a slow server in its own process, interleaving, bars, and output."""

from __future__ import annotations

import json
import resource
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

__all__ = [
    "MEASUREMENTS",
    "allow_open_files",
    "at_least",
    "at_most",
    "free_port",
    "interleave",
    "ratios",
    "report",
    "seconds",
    "slow_server",
    "usually",
]

T = TypeVar("T")


def usually(number: T, *, quick: T) -> T:
    """Return a number, or a smaller one for ``--quick``, which is only a smoke test."""
    return quick if "--quick" in sys.argv else number


MEASUREMENTS = usually(5, quick=1)
"""How often a row is measured in one run, if it is measured more than once."""


def interleave(ways: Mapping[str, Callable[[], T]], times: int) -> dict[str, list[T]]:
    """Call all ways one after another, `times` times; return the results of each, in order.

    Other load on the machine then slows all of them equally.
    """
    returned: dict[str, list[T]] = {name: [] for name in ways}
    for _ in range(times):
        for name, way in ways.items():
            returned[name].append(way())
    return returned


def free_port() -> int:
    """Return a port that is free now, for a server that must restart at the same port."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        return port


def allow_open_files(number: int) -> None:
    """Raise the limit of open files, connections included, for this process and its children.

    Raises:
        RuntimeError: The system does not allow that many.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < number:
        raise RuntimeError(
            f"{number} open files are needed, and the hard limit of RLIMIT_NOFILE is {hard}: "
            "raise it (ulimit -Hn)"
        )
    if soft != resource.RLIM_INFINITY and soft < number:
        resource.setrlimit(resource.RLIMIT_NOFILE, (number, hard))


@contextmanager
def slow_server(median: float, *more: float) -> Iterator[str]:
    """Run the server of ``_server.py`` with these arguments; yield its URL."""
    command = [sys.executable, str(Path(__file__).with_name("_server.py")), *map(str, (median, *more))]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:  # noqa: S603
        if server.stdout is None or server.stdin is None:
            raise RuntimeError("the server has no pipes")
        try:
            yield f"http://127.0.0.1:{int(server.stdout.readline())}"
        finally:
            server.stdin.close()  # the server exits when its input ends


def ratios(ones: Sequence[float], others: Sequence[float]) -> list[float]:
    """Return the ratio of one to the other in each measurement."""
    return [one / other for one, other in zip(ones, others, strict=True)]


def at_most(measured: Sequence[float], bar: float) -> dict[str, object]:
    """Return the output for a ratio with an upper bar: the median and the range."""
    ratio = statistics.median(measured)
    return {**_rounded(ratio, measured), "at_most": bar, "met": ratio <= bar}


def at_least(measured: Sequence[float], bar: float) -> dict[str, object]:
    """Return the output for a ratio with a lower bar: the median and the range."""
    ratio = statistics.median(measured)
    return {**_rounded(ratio, measured), "at_least": bar, "met": ratio >= bar}


def _rounded(ratio: float, measured: Sequence[float]) -> dict[str, object]:
    printed = {"ratio": ratio, "lowest": min(measured), "highest": max(measured)}
    return {name: round(each, 3) for name, each in printed.items()}


def report(**result: object) -> None:
    """Print a result as one line of JSON."""
    print(json.dumps(result))


def seconds(act: Callable[[], object]) -> float:
    """Return the duration of a call."""
    began = time.perf_counter()
    act()
    return time.perf_counter() - began
