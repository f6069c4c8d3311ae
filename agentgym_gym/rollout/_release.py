"""Release environments after this process was killed, through a helper process that outlives it.

Ray kills its workers when a run ends, and a killed process closes nothing. Therefore the first environment in
this process with a resource elsewhere, such as a lease on a server, starts a small helper process. The
helper waits until this process ends, for any reason, and then releases the resource.

The environment's class names the release function in ``metadata["release_entry_point"]``, such as
``"package.module:function"``. The helper calls it with the id of the process that has ended, and with the
arguments of the environment as keywords, once for all environments with the same arguments. The function
should release the remaining resources of that process, if there are any. If the whole machine or container
stops, the helper stops too.
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
"""The key of the release function in an environment's ``metadata``."""

_lock = threading.Lock()
_pipe: int | None = None  # a descriptor instead of a file object: it stays open until this process ends
_sent: set[bytes] = set()
_warned: set[str] = set()


def release_at_end(metadata: Mapping[str, Any], arguments: Mapping[str, Any]) -> None:
    """Schedule the release of an environment's remote resources for the end of this process.

    Args:
        metadata: The metadata of the environment's class.
        arguments: The environment's arguments. They are sent through a pipe, since they may contain
            credentials.
    """
    entry_point = metadata.get(ENTRY_POINT)
    if entry_point is None or not hasattr(os, "fork"):
        return
    try:
        _send(json.dumps([os.getpid(), entry_point, dict(arguments)]).encode() + b"\n")
    except (OSError, TypeError, ValueError) as error:  # best effort: the episode runs without it
        why = f"{type(error).__name__}: {error}"
        if why not in _warned:
            _warned.add(why)
            logger.warning("open environments will not be released if this process is killed: %s", why)


def _send(line: bytes) -> None:
    global _pipe  # noqa: PLW0603 - this process has one helper
    with _lock:
        if line in _sent:
            return
        if _pipe is None:
            _pipe = _start()
        os.write(_pipe, line)
        _sent.add(line)


def _start() -> int:
    """Start the helper; return a pipe whose other end reaches EOF when this process ends."""
    path = [os.path.abspath(folder) for folder in sys.path]  # noqa: PTH100 - '' is the current folder
    starter = subprocess.Popen(  # noqa: S603 - it is this module
        [sys.executable, "-c", f"from {__name__} import wait_and_release; wait_and_release()"],
        stdin=subprocess.PIPE,
        bufsize=0,
        stdout=subprocess.DEVNULL,
        stderr=None if _is_file(2) else subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(path)},
        start_new_session=True,  # Ctrl-C in a terminal must not reach the helper
    )
    if starter.wait() != 0 or starter.stdin is None:
        raise OSError(f"the helper process did not start: exit status {starter.returncode}")
    with starter.stdin as pipe:
        return os.dup(pipe.fileno())


def _is_file(descriptor: int) -> bool:
    """Return whether a descriptor is a log file; the reader of a pipe would wait for its last writer."""
    with contextlib.suppress(OSError):
        return stat.S_ISREG(os.fstat(descriptor).st_mode)
    return False


def wait_and_release() -> None:
    """Run the helper: read the environments to release until EOF, then release them."""
    if os.fork():
        os._exit(0)  # Ray kills a worker together with its children, so the helper must not be one
    lines = sys.stdin.buffer.read().splitlines()
    logging.basicConfig(format="%(name)s: %(message)s", level=logging.WARNING)
    for line in lines:
        pid, entry_point, arguments = json.loads(line)
        try:
            import_object(entry_point)(pid, **arguments)
        except Exception as error:  # noqa: BLE001 - the others must still be released
            logger.warning("%s failed for process %d: %s: %s", entry_point, pid, type(error).__name__, error)


def _disconnect_after_fork() -> None:
    """Close the pipe in a forked child: the helper waits for the end of the parent only."""
    global _lock, _pipe
    if _pipe is not None:
        os.close(_pipe)
    _lock, _pipe = threading.Lock(), None
    _sent.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_disconnect_after_fork)
