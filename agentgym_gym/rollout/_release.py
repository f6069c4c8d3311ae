"""Has environments released after this process was killed, by a process that outlives it.

Ray kills its workers when a run ends, and what is killed closes nothing. So the first environment that is
made here and has something to be released elsewhere, as on a server, starts a small process. That waits until
this one has ended, however it ends, and then has it released.

An environment says by whom: its class names a function under ``metadata["release_entry_point"]``, such as
``"package.module:function"``. In the other process it is called with the id of the process that has ended,
and with the arguments of the environment as keywords; once for all environments with the same arguments. It
should release what that process still held, which may be nothing. Where the whole machine or container ends,
that process ends too.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import stat
import subprocess
import sys
import threading
from collections.abc import Mapping
from typing import Any

from agentgym_gym._imports import import_object
from agentgym_gym._logging import logger

__all__ = ["ENTRY_POINT", "release_at_end", "wait_and_release"]

ENTRY_POINT = "release_entry_point"
"""The key of an environment's ``metadata``."""

_lock = threading.Lock()
_pipe: int | None = None  # a descriptor, and no file: it stays open until this process has ended
_told: set[bytes] = set()
_warned: set[str] = set()


def release_at_end(metadata: Mapping[str, Any], arguments: Mapping[str, Any]) -> None:
    """Have what an environment holds elsewhere released when this process has ended.

    Args:
        metadata: The metadata of the environment's class.
        arguments: What it is made with. They go through a pipe, since there may be credentials among them.
    """
    named = metadata.get(ENTRY_POINT)
    if named is None or not hasattr(os, "fork"):
        return
    try:
        _tell(json.dumps([os.getpid(), named, dict(arguments)]).encode() + b"\n")
    except (OSError, TypeError, ValueError) as error:  # it is a help only: the episode is played without it
        why = f"{type(error).__name__}: {error}"
        if why not in _warned:
            _warned.add(why)
            logger.warning("what this process leaves open if it is killed will not be released: %s", why)


def _tell(line: bytes) -> None:
    global _pipe  # noqa: PLW0603 - the other process is one for this process
    with _lock:
        if line in _told:
            return
        if _pipe is None:
            _pipe = _start()
        os.write(_pipe, line)
        _told.add(line)


def _start() -> int:
    """Start the other process; return the pipe, of which it meets the end when this one has ended."""
    path = [os.path.abspath(folder) for folder in sys.path]  # noqa: PTH100 - '' is the current folder
    starter = subprocess.Popen(  # noqa: S603 - it is this module
        [sys.executable, "-c", f"from {__name__} import wait_and_release; wait_and_release()"],
        stdin=subprocess.PIPE,
        bufsize=0,
        stdout=subprocess.DEVNULL,
        stderr=None if _is_file(2) else subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(path)},
        start_new_session=True,  # Ctrl-C in a terminal is not for it
    )
    if starter.wait() != 0 or starter.stdin is None:
        raise OSError(f"the process that releases did not start: it ended with {starter.returncode}")
    with starter.stdin as pipe:
        return os.dup(pipe.fileno())


def _is_file(descriptor: int) -> bool:
    """Return whether a log goes there; whoever reads a pipe would wait for its last writer."""
    with contextlib.suppress(OSError):
        return stat.S_ISREG(os.fstat(descriptor).st_mode)
    return False


def wait_and_release() -> None:
    """Run in the other process: read what to release until the end of the input, then have it released."""
    if os.fork():
        os._exit(0)  # Ray kills the children of a worker with it, so this must not be one
    lines = sys.stdin.buffer.read().splitlines()
    logging.basicConfig(format="%(name)s: %(message)s", level=logging.WARNING)
    for line in lines:
        pid, named, arguments = json.loads(line)
        try:
            import_object(named)(pid, **arguments)
        except Exception as error:  # noqa: BLE001 - the next may have more luck
            logger.warning("%s failed for process %d: %s: %s", named, pid, type(error).__name__, error)


def _forget() -> None:
    """Let go of the pipe in a forked child, whose parent's end the other process waits for."""
    global _lock, _pipe
    if _pipe is not None:
        os.close(_pipe)
    _lock, _pipe = threading.Lock(), None
    _told.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
