"""Held ids are persisted, so that they can be closed when a process has died.

A process that is killed closes nothing, and most servers do not list what they hold. So each process has a
folder, with one folder in it for each server that can close environments, and in that an empty file for each
environment that the process holds, named by its id. A lock file tells whether the process still runs: the
operating system releases the lock however the process ends. ``agentgym leases`` reads these records.

The records are only a help: where they cannot be written, episodes are played without them.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import tempfile
import threading
import time
from collections import deque
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote, unquote

from agentgym_gym import _lifecycle
from agentgym_gym._leasing import capacity
from agentgym_gym._leasing.capacity import folder_of
from agentgym_gym._logging import logger

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["Journal", "Record", "records"]

_ABOUT, _LOCK = "about.json", "lock"


class Journal:
    """The record of what this process holds on one server.

    Changes are noted at once, in order, and reach the disk by `flush`: the other methods touch no file.

    Args:
        environment: Name of the environment.
        server: Base URL of the server.
    """

    def __init__(self, environment: str, server: str) -> None:
        self._name = f"{folder_of(server).name}-{quote(environment, safe='')}"
        self._changes: deque[Callable[[Path], None]] = deque()
        # Reentrant, because the garbage collector may run while it is held, and release a lease.
        self._lock = threading.RLock()

    def add(self, env_id: int) -> None:
        """Note an environment that was made."""
        self._changes.append(partial(_add, env_id))

    def discard(self, env_id: int) -> None:
        """Note that an environment was closed."""
        self._changes.append(partial(_discard, env_id))

    def clear(self) -> None:
        """Note that all are lost: the server went away, and may have given their ids to others since."""
        self._changes.append(_clear)

    def flush(self) -> None:
        """Write the changes to disk. What cannot be written is left out."""
        with self._lock:
            while self._changes:
                change = self._changes.popleft()
                process = _this_process()
                if process.folder is not None:
                    with contextlib.suppress(OSError):
                        change(process.folder / self._name)


def _add(env_id: int, folder: Path) -> None:
    folder.mkdir(exist_ok=True)
    (folder / str(env_id)).touch()


def _discard(env_id: int, folder: Path) -> None:
    (folder / str(env_id)).unlink(missing_ok=True)


def _clear(folder: Path) -> None:
    for env_id in _ids(folder):
        _discard(env_id, folder)


class _Process:
    """The folder of this process, and the lock that tells others that the process runs.

    Attributes:
        folder: Its path; None where no folder could be made.
    """

    def __init__(self) -> None:
        from filelock import FileLock  # noqa: PLC0415 - not needed before something is held

        self.folder: Path | None = None
        try:
            parent = capacity.FOLDER / "held"
            parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            folder = Path(tempfile.mkdtemp(dir=parent))
            self._lock = FileLock(folder / _LOCK, timeout=0, thread_local=False)
            self._lock.acquire()
            about = {"pid": os.getpid(), "began": time.time()}
            (folder / _ABOUT).write_text(json.dumps(about), "ascii")
            self.folder = folder
        except OSError as error:  # no room, no right to write; filelock's time-out is one, too
            logger.debug("held ids cannot be persisted: %s", error)

    def leave(self) -> None:
        """Remove the folder at the end of the program, except for what is still open."""
        if self.folder is not None:
            _tidy(self.folder)
            with contextlib.suppress(OSError):
                self._lock.release()


@dataclass(frozen=True)
class Record:
    """What one process holds, or left open, on one server.

    Attributes:
        folder: The folder of the record.
        environment: Name of the environment.
        pid: The id of the process.
        began: When the process took its first environment on any server, in seconds since 1970.
        alive: Whether the process still runs.
        ids: When each environment was made, in seconds since 1970, by id; the oldest first.
    """

    folder: Path
    environment: str
    pid: int
    began: float
    alive: bool
    ids: dict[int, float]

    @contextlib.contextmanager
    def claimed(self) -> Iterator[bool]:
        """Lock the record, so that no one else clears it meanwhile; yields whether it could be locked."""
        with _locked(self.folder.parent) as ours:
            yield ours
            if ours:
                _tidy(self.folder.parent)

    def remove(self, env_id: int) -> None:
        """Remove an environment from the record."""
        (self.folder / str(env_id)).unlink(missing_ok=True)


def records(server: str) -> list[Record]:
    """Return what the processes of this user and machine recorded of a server, the oldest first.

    Args:
        server: Its base URL.
    """
    found = []
    for folder in (capacity.FOLDER / "held").glob(f"*/{folder_of(server).name}-*"):
        # A record that is just being made or removed is incomplete, and is left out.
        with contextlib.suppress(OSError, ValueError, KeyError):
            about = json.loads((folder.parent / _ABOUT).read_text("ascii"))
            with _locked(folder.parent) as free:
                ids = _ids(folder)
            environment = unquote(folder.name.partition("-")[2])
            found.append(Record(folder, environment, about["pid"], about["began"], not free, ids))
    return sorted(found, key=lambda record: record.began)


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[bool]:
    """Hold the lock of a process's folder, if no one else does; yields whether it is held."""
    from filelock import FileLock, Timeout  # noqa: PLC0415 - see above

    if not (folder / _LOCK).exists():
        yield False  # nobody can tell whether the process runs
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
    """Return the recorded environments: when each was made, by id."""
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        found = {int(e.name): e.stat().st_mtime for e in entries if e.name.isdecimal()}
        return dict(sorted(found.items(), key=lambda item: (item[1], item[0])))
    return {}


def _tidy(process: Path) -> None:
    """Remove the folders of a process in which no environment is recorded, and its own if none is left."""
    with contextlib.suppress(OSError):
        servers = [folder for folder in process.iterdir() if folder.is_dir()]
        still_open = [folder for folder in servers if _ids(folder)]
        for folder in servers if still_open else [process]:
            if folder not in still_open:
                shutil.rmtree(folder, ignore_errors=True)


# One, unless the folder is changed, as tests do. Without a lock: were Ctrl-C to come just before it is
# released, all other threads would wait for ever.
_processes: dict[Path, _Process] = {}


def _this_process() -> _Process:
    process = _processes.get(capacity.FOLDER)
    if process is None:
        made = _Process()
        process = _processes.setdefault(capacity.FOLDER, made)
        if process is not made:
            made.leave()  # another thread was faster
    return process


def _leave_all() -> None:
    with contextlib.suppress(KeyError):  # another thread has taken the last
        while _processes:
            _processes.popitem()[1].leave()


_lifecycle.at_exit(_leave_all, order=_lifecycle.REMOVE_RECORDS)
_lifecycle.after_fork_in_child(_processes.clear)
