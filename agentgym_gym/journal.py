"""What this process holds on a server that can close, written down for when the process dies.

A process that is killed closes nothing, and most servers do not tell what they hold. So each process has a
folder for each server, and in it an empty file for each environment it holds, named by the id. A lock that
the system lets go of however the process ends says whether it is still there. ``agentgym leases`` reads it.

Nothing here ever keeps an episode from being played: where nothing can be written, nothing is written.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import logging
import os
import shutil
import tempfile
import time
import weakref
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from agentgym_gym.slots import folder_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from filelock import BaseFileLock

__all__ = ["Journal", "Record", "records"]

_log = logging.getLogger(__name__)

_ABOUT, _LOCK = "about.json", "lock"


class Journal:
    """What this process holds on one server.

    Args:
        environment: Name of the environment.
        server: Base URL of the server.
    """

    def __init__(self, environment: str, server: str) -> None:
        self._environment = environment
        self._server = server
        self._folder: Path | None = None
        self._lock: BaseFileLock | None = None
        self._failed = False
        _journals.add(self)

    def add(self, env_id: int) -> None:
        """Write down an environment that was made."""
        try:
            if self._folder is None and not self._failed:
                self._open()
            if self._folder is not None:
                (self._folder / str(env_id)).touch()
        except OSError as error:  # no room, no right to write; filelock's time-out is one, too
            self._failed = True
            _log.debug("what is held on a server cannot be written down: %s", error)

    def discard(self, env_id: int) -> None:
        """Strike out an environment that was closed."""
        if self._folder is not None:
            with contextlib.suppress(OSError):
                (self._folder / str(env_id)).unlink(missing_ok=True)

    def clear(self) -> None:
        """Strike out all: the server went away, and what it gave out since may be another's."""
        if self._folder is not None:
            for env_id in _ids(self._folder):
                self.discard(env_id)

    def leave(self) -> None:
        """Take the folder away at the end of the program, unless something is still open."""
        folder, self._folder = self._folder, None
        if folder is not None and not _ids(folder):
            shutil.rmtree(folder, ignore_errors=True)
        if self._lock is not None:
            with contextlib.suppress(OSError):
                self._lock.release()

    def _open(self) -> None:
        from filelock import FileLock  # noqa: PLC0415 - not needed before something is held

        parent = folder_of(self._server) / "held"
        parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        folder = Path(tempfile.mkdtemp(dir=parent))
        self._lock = FileLock(folder / _LOCK, timeout=0, thread_local=False)
        self._lock.acquire()
        about = {"environment": self._environment, "pid": os.getpid(), "began": time.time()}
        (folder / _ABOUT).write_text(json.dumps(about), "ascii")
        self._folder = folder


@dataclass(frozen=True)
class Record:
    """What one process wrote down of one server.

    Attributes:
        environment: Name of the environment.
        pid: The id of the process.
        began: When it took its first environment, in seconds since 1970.
        alive: Whether the process is still there.
        ids: The environments it holds, or left open: when each was made, by id, the first first.
    """

    folder: Path = field(repr=False)
    environment: str
    pid: int
    began: float
    alive: bool
    ids: dict[int, float]

    @contextlib.contextmanager
    def claimed(self) -> Iterator[bool]:
        """Keep others from clearing it meanwhile; yields whether that could be done."""
        with _locked(self.folder) as ours:
            yield ours
            if ours and not _ids(self.folder):
                shutil.rmtree(self.folder, ignore_errors=True)

    def strike(self, env_id: int) -> None:
        """Strike out an environment."""
        (self.folder / str(env_id)).unlink(missing_ok=True)


def records(server: str) -> list[Record]:
    """Return what the processes of this user and machine wrote down of a server, the oldest first.

    Args:
        server: Its base URL.
    """
    found = []
    with contextlib.suppress(OSError):
        for folder in (folder_of(server) / "held").iterdir():
            # One that is just being made, or taken away, is neither whole nor worth telling.
            with contextlib.suppress(OSError, ValueError, KeyError):
                about = json.loads((folder / _ABOUT).read_text("ascii"))
                with _locked(folder) as free:
                    ids = _ids(folder)
                found.append(
                    Record(folder, about["environment"], about["pid"], about["began"], not free, ids)
                )
    return sorted(found, key=lambda record: record.began)


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[bool]:
    """Hold the lock of a folder, if nobody else does; yields whether."""
    from filelock import FileLock, Timeout  # noqa: PLC0415 - see above

    if not (folder / _LOCK).exists():
        yield False  # then nobody can tell
        return
    lock = FileLock(folder / _LOCK, timeout=0, thread_local=False)
    try:
        lock.acquire()
    except Timeout:
        yield False
        return
    try:
        yield True
    finally:
        lock.release()


def _ids(folder: Path) -> dict[int, float]:
    """Return the environments written down, by id, and when each was."""
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        found = {int(e.name): e.stat().st_mtime for e in entries if e.name.isdecimal()}
        return dict(sorted(found.items(), key=lambda item: (item[1], item[0])))
    return {}


_journals: weakref.WeakSet[Journal] = weakref.WeakSet()


# Registered before the environments give back what they hold at the end (see seat.py), and so run after it.
@atexit.register
def _leave_all() -> None:
    for journal in list(_journals):
        journal.leave()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_journals.clear)
