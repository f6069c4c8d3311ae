"""Guard process: runs one command, and ends the command's whole process tree when its parent exits.

The parent runs ``python guard.py GRACE COMMAND…`` by its path, with only the standard library. The guard
stops when its standard input ends. That is a pipe that the parent never writes to, and the system closes it
however the parent exits. On Linux the guard also watches the parent itself, since a forked child of the
parent may keep the pipe open. It also stops on SIGTERM and SIGINT, and when the command exits.

To stop, the guard sends SIGTERM to the process group, waits for ``GRACE`` seconds, and sends SIGKILL to all
remaining processes. On Linux these include processes in their own sessions, because the guard is a subreaper
that adopts orphans. On other systems they are the process group.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import select
import signal
import sys
import time
from pathlib import Path

__all__ = ["descendants", "main"]

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36

KILL_SECONDS = 5.0
"""Seconds to wait for processes to end after SIGKILL, which the system may delay."""

NOT_STARTED = 127
"""Exit status if the command cannot be run, as in a shell."""


def main() -> int:
    """Run the command from the command line.

    Returns:
        The exit status of the command, or 128 plus the signal number if a signal ended it.
    """
    parent = _parent_descriptor()
    grace, command = float(sys.argv[1]), sys.argv[2:]
    wake_reader, wake_writer = os.pipe()
    os.set_blocking(wake_writer, False)
    signal.set_wakeup_fd(wake_writer, warn_on_full_buffer=False)
    # Handlers instead of SIG_IGN, because the command would inherit ignored signals.
    signals: list[int] = []
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda number, _: signals.append(number))
    signal.signal(signal.SIGCHLD, lambda *_: None)
    _prctl(PR_SET_CHILD_SUBREAPER, 1)
    child = _run(command)
    watched = [0, wake_reader, *parent]
    status = None
    while status is None and not signals:
        ready, _, _ = select.select(watched, [], [])
        if wake_reader in ready:
            os.read(wake_reader, 4096)
        if (0 in ready and not os.read(0, 4096)) or not set(parent).isdisjoint(ready):
            break
        status = _reap(child)[1]
    return _end_all(child, status, wake_reader, grace)


def _parent_descriptor() -> list[int]:
    """Return a descriptor that is readable when the parent has exited; none if the system has no such one."""
    if sys.platform == "linux":
        with contextlib.suppress(OSError, AttributeError):
            return [os.pidfd_open(os.getppid())]
    return []


def _run(command: list[str]) -> int:
    """Start the command, which gets SIGKILL if this process is killed, and return its process id."""
    parent = os.getpid()
    child = os.fork()
    if child:
        return child
    try:
        _prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() == parent:
            nothing = os.open(os.devnull, os.O_RDONLY)
            os.dup2(nothing, 0)
            os.execvp(command[0], command)  # noqa: S606 - the purpose of this program
    except OSError as error:
        os.write(2, f"{command[0]} cannot be run: {error.strerror}\n".encode())
    finally:
        os._exit(NOT_STARTED)


def _end_all(child: int, status: int | None, wake_reader: int, grace: float) -> int:
    """End the process group and all descendants of this process, and return the command's status."""
    with contextlib.suppress(OSError):
        os.killpg(0, signal.SIGTERM)  # reaches this process too, whose handler records it
    now = time.monotonic()
    for deadline, kill in ((now + grace, False), (now + grace + KILL_SECONDS, True)):
        left = True
        while left and time.monotonic() < deadline:
            if kill:
                _kill_descendants()
            left, ended = _reap(child)
            status = ended if status is None else status
            if left and select.select([wake_reader], [], [], 0.02 if kill else 0.2)[0]:
                os.read(wake_reader, 4096)
    return NOT_STARTED if status is None else status


def _reap(child: int) -> tuple[bool, int | None]:
    """Reap exited processes; return whether others are left, and the child's status if it exited."""
    found = None
    try:
        while True:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if not pid:
                return True, found
            if pid == child:
                code = os.waitstatus_to_exitcode(status)
                found = code if code >= 0 else 128 - code
    except ChildProcessError:
        return False, found


def _kill_descendants() -> None:
    below = descendants(os.getpid())
    if below is None:
        os.killpg(0, signal.SIGKILL)  # this process too, which has nothing left to do
        return
    for pid in below:
        with contextlib.suppress(OSError):
            os.kill(pid, signal.SIGKILL)


def descendants(ancestor: int) -> set[int] | None:
    """Return the process ids of all descendants of a process; None if the system has no ``/proc``.

    Args:
        ancestor: The id of a process.
    """
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError, ValueError, IndexError):
            # The name of the program is in parentheses, and may itself contain parentheses.
            parent = int(entry.read_bytes().rpartition(b")")[2].split()[1])
            children.setdefault(parent, []).append(int(entry.parent.name))
    if not children:
        return None
    below: set[int] = set()
    waiting = [ancestor]
    while waiting:
        new = [pid for pid in children.get(waiting.pop(), []) if pid not in below]
        below.update(new)
        waiting += new
    return below


def _prctl(option: int, value: int) -> None:
    """Call ``prctl`` on Linux, and ignore failures."""
    if sys.platform == "linux":
        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(option, ctypes.c_ulong(value), 0, 0, 0)


if __name__ == "__main__":
    sys.exit(main())
