"""Programs that tests start: a Ctrl-C ends them, however the tests themselves were started."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from typing import Any


@contextlib.contextmanager
def default_sigint() -> Iterator[None]:
    """Give this process Python's own handling of SIGINT for a while.

    A script's shell starts what runs in the background with SIGINT ignored, and a program inherits what is
    ignored. To be entered in the main thread, as only there `signal.signal` may be called.
    """
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def environment(**variables: str) -> dict[str, str]:
    """Return environment variables by which a program can import what this process can."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), **variables}


def start(command: list[str], **options: Any) -> subprocess.Popen[Any]:
    """Start a program with the default handling of SIGINT; `options` go to `subprocess.Popen`."""
    with default_sigint():  # `Popen` returns when the program has replaced the child's copy of this process
        return subprocess.Popen(command, **options)


def run(command: list[str], **options: Any) -> subprocess.CompletedProcess[Any]:
    """Run a program to its end, as `start` starts it; `options` go to `subprocess.run`."""
    with default_sigint():
        return subprocess.run(command, **options)  # noqa: PLW1510 - `check` is the caller's
