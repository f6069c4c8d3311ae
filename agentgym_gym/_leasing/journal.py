"""Saves the ids of leased environments to disk, so that they can be closed after a process has died.

A killed process closes nothing, and most servers cannot list their environments. So each process has a
folder, with a subfolder for each server that can close environments. A subfolder contains an empty file for
each environment that the process has leased, named by its id. A lock file shows whether the process still
runs: the operating system releases the lock when the process ends for any reason. ``agentgym leases`` reads
these records.

The records are a best-effort feature: if they cannot be written, which is logged once, episodes continue
without them. The next change retries failed writes.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import shutil
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote, unquote

from agentgym_gym import _lifecycle
from agentgym_gym._leasing import state_folder
from agentgym_gym._leasing.state_folder import folder_name
from agentgym_gym._logging import log
from agentgym_gym._text import reason

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["LeaseJournal", "Record", "records"]

_ABOUT, _LOCK = "about.json", "lock"


class LeaseJournal:
    """The record of this process's leases on one server.

    Changes are made in memory, and `flush` writes them to disk: the other methods touch no file.

    Args:
        environment: Name of the environment.
        server: Base URL of the server.
    """

    def __init__(self, environment: str, server: str) -> None:
        self._name = f"{folder_name(server)}-{quote(environment, safe='')}"
        self._held: dict[int, float] = {}  # creation time by id, in seconds since 1970
        self._changed: set[int] = set()  # ids whose files must be written or removed
        self._written_in: Path | None = None
        # Reentrant, because the garbage collector may run while the lock is held, and release a lease.
        self._lock = threading.RLock()

    def add(self, env_id: int) -> None:
        """Record a new environment."""
        self._held[env_id] = time.time()
        self._changed.add(env_id)

    def discard(self, env_id: int) -> None:
        """Record that an environment was closed."""
        self._held.pop(env_id, None)
        self._changed.add(env_id)

    def clear(self) -> None:
        """Discard all environments: the server went down, and other clients may have their ids now."""
        for env_id in list(self._held):
            self.discard(env_id)

    def flush(self) -> None:
        """Write the changes to disk. Failed writes are kept for the next call."""
        try:
            with self._lock:
                self._write()
        except Exception as error:  # noqa: BLE001 - a failed record must not end the episode
            _warn(error)

    def _write(self) -> None:
        folder = _this_process().folder / self._name
        if folder != self._written_in:
            self._changed.update(list(self._held))
            self._written_in = folder
        for env_id in list(self._changed):
            try:
                self._changed.discard(env_id)  # first: it may change again while its file is written
                self._write_one(folder, env_id)
            except BaseException:
                self._changed.add(env_id)
                raise

    def _write_one(self, folder: Path, env_id: int) -> None:
        file, made = folder / str(env_id), self._held.get(env_id)
        if made is None:
            file.unlink(missing_ok=True)
        else:
            folder.mkdir(exist_ok=True)
            file.touch()
            os.utime(file, (made, made))


_warned: set[Path | None] = set()


def _warn(error: Exception) -> None:
    """Log that the records cannot be written, once per folder."""
    try:
        folder: Path | None = state_folder.location()
    except OSError:
        folder = None
    if folder not in _warned:
        _warned.add(folder)
        log(logging.WARNING, "held ids not saved", folder=str(folder), message=reason(error))


class _Process:
    """The folder of this process, and the lock that shows others that the process runs.

    Attributes:
        folder: Its path.

    Raises:
        OSError: It cannot be created: the disk is full, or the permissions do not allow it.
    """

    def __init__(self) -> None:
        from filelock import FileLock  # noqa: PLC0415 - not needed before something is held

        parent = state_folder.base_folder(create=True) / "held"
        parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.folder = Path(tempfile.mkdtemp(dir=parent))
        self._lock = FileLock(self.folder / _LOCK, timeout=0, thread_local=False)
        try:
            self._lock.acquire()
            about = {"pid": os.getpid(), "began": time.time()}
            (self.folder / _ABOUT).write_text(json.dumps(about), "ascii")
        except BaseException:
            self._lock.release()
            shutil.rmtree(self.folder, ignore_errors=True)
            raise

    @property
    def there(self) -> bool:
        """Whether the folder still exists; programs that clean up temporary files may remove it."""
        return (self.folder / _LOCK).exists() and (self.folder / _ABOUT).exists()

    def leave(self) -> None:
        """Remove the folder at exit, except for records of open environments."""
        _tidy(self.folder)
        with contextlib.suppress(OSError):
            self._lock.release()


@dataclass(frozen=True)
class Record:
    """The environments that one process has leased, or left open, on one server.

    Attributes:
        folder: The folder of the record.
        environment: Name of the environment.
        pid: The id of the process; None if its file cannot be read.
        began: When the process took its first lease on any server, in seconds since 1970.
        alive: Whether the process still runs.
        ids: Creation time of each environment, in seconds since 1970, by id; oldest first.
    """

    folder: Path
    environment: str
    pid: int | None
    began: float
    alive: bool
    ids: dict[int, float]

    @contextlib.contextmanager
    def claimed(self) -> Iterator[bool]:
        """Lock the record, so that no other process clears it; yield whether that succeeded."""
        with _locked(self.folder.parent) as ours:
            yield ours
            if ours:
                _tidy(self.folder.parent)

    def remove(self, env_id: int) -> None:
        """Remove an environment from the record."""
        (self.folder / str(env_id)).unlink(missing_ok=True)


def records(server: str) -> list[Record]:
    """Return the records of this user's processes on this machine for a server, oldest first.

    Args:
        server: Its base URL.

    Raises:
        OSError: The folder is not safe to read.
    """
    found, prefix = [], f"{folder_name(server)}-"
    processes = _folders(state_folder.base_folder() / "held")
    for folder in [each for process in processes for each in _folders(process)]:
        if not folder.name.startswith(prefix):
            continue
        # A record that is being created or removed right now is incomplete, and is skipped.
        with contextlib.suppress(OSError):
            about = _about(folder.parent)
            with _locked(folder.parent) as free:
                ids = _ids(folder)
            environment = unquote(folder.name.partition("-")[2])
            if about is not None:
                found.append(Record(folder, environment, *about, not free, ids))
            elif ids:
                found.append(Record(folder, environment, None, min(ids.values()), not free, ids))
    return sorted(found, key=lambda record: record.began)


def _folders(parent: Path) -> list[Path]:
    """Return the folders in a folder, which may be removed by another process meanwhile."""
    with contextlib.suppress(FileNotFoundError, PermissionError):
        return [each for each in parent.iterdir() if each.is_dir()]
    return []


def _about(process: Path) -> tuple[int, float] | None:
    """Return the id of a process and its start time; None if its file is missing or broken."""
    try:
        about = json.loads((process / _ABOUT).read_text("ascii"))
        return int(about["pid"]), float(about["began"])
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[bool]:
    """Try to lock a process's folder; yield whether that succeeded."""
    from filelock import FileLock  # noqa: PLC0415 - see above

    if not (folder / _LOCK).exists():
        yield False  # it is unknown whether the process runs
        return
    lock = FileLock(folder / _LOCK, timeout=0, thread_local=False)
    try:
        lock.acquire()
    except (OSError, NotImplementedError):  # it runs, or that is unknown
        yield False
        return
    try:
        yield True
    finally:
        lock.release()


def _ids(folder: Path) -> dict[int, float]:
    """Return the creation times of the recorded environments, by id."""
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        found = {int(e.name): e.stat().st_mtime for e in entries if e.name.isdecimal()}
        return dict(sorted(found.items(), key=lambda item: (item[1], item[0])))
    return {}


def _tidy(process: Path) -> None:
    """Remove the empty records of a process, and its folder if no record is left."""
    with contextlib.suppress(OSError):
        servers = [folder for folder in process.iterdir() if folder.is_dir()]
        still_open = [folder for folder in servers if _ids(folder)]
        for folder in servers if still_open else [process]:
            if folder not in still_open:
                shutil.rmtree(folder, ignore_errors=True)


# One entry, unless `FOLDER` changes, as in tests. No lock: if Ctrl-C came just before its release, all other
# threads would wait forever.
_processes: dict[Path, _Process] = {}


def _this_process() -> _Process:
    """Return the folder of this process; create it on first use, or if it was removed.

    Raises:
        OSError: It cannot be created.
    """
    base = state_folder.base_folder()
    process = _processes.get(base)
    if process is None or not process.there:
        if process is not None and _processes.get(base) is process:
            del _processes[base]
            process.leave()
            shutil.rmtree(process.folder, ignore_errors=True)  # in case a part of it is left
        made = _Process()
        process = _processes.setdefault(base, made)
        if process is not made:
            made.leave()  # another thread was first
    return process


def _leave_all() -> None:
    with contextlib.suppress(KeyError):  # another thread took the last entry
        while _processes:
            _processes.popitem()[1].leave()


_lifecycle.at_exit(_leave_all, order=_lifecycle.REMOVE_RECORDS)
_lifecycle.after_fork_in_child(_processes.clear)
