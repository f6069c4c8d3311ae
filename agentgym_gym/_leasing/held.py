"""What this process holds on a server that can close, written down for when the process dies.

A process that is killed closes nothing, and most servers do not tell what they hold. So each process has a
folder, with one in it for each server, and in that an empty file for each environment it holds, named by the
id. A lock that the system lets go of however the process ends says whether it is still there. ``agentgym
leases`` reads it.

Nothing here ever keeps an episode from being played: where nothing can be written, nothing is written.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import shutil
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote, unquote

from agentgym_gym._leasing import capacity
from agentgym_gym._leasing.capacity import folder_of
from agentgym_gym._logging import logger

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Journal", "Record", "records"]

_ABOUT, _LOCK = "about.json", "lock"


class Journal:
    """What this process holds on one server.

    Args:
        environment: Name of the environment.
        server: Base URL of the server.
    """

    def __init__(self, environment: str, server: str) -> None:
        self._name = f"{folder_of(server).name}-{quote(environment, safe='')}"

    def add(self, env_id: int) -> None:
        """Write down an environment that was made."""
        process = _this_process()
        if process.folder is not None:
            with contextlib.suppress(OSError):
                (process.folder / self._name).mkdir(exist_ok=True)
                (process.folder / self._name / str(env_id)).touch()

    def discard(self, env_id: int) -> None:
        """Strike out an environment that was closed."""
        process = _this_process()
        if process.folder is not None:
            with contextlib.suppress(OSError):
                (process.folder / self._name / str(env_id)).unlink(missing_ok=True)

    def clear(self) -> None:
        """Strike out all: the server went away, and what it gave out since may be another's."""
        process = _this_process()
        if process.folder is not None:
            for env_id in _ids(process.folder / self._name):
                self.discard(env_id)


class _Process:
    """The folder of this process, and the lock by which others see that it is there.

    Attributes:
        folder: Where it is; None where none could be made.
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
            logger.debug("what is held on servers cannot be written down: %s", error)

    def leave(self) -> None:
        """Take the folder away at the end of the program, but for what is still open."""
        if self.folder is not None:
            _tidy(self.folder)
            with contextlib.suppress(OSError):
                self._lock.release()


@dataclass(frozen=True)
class Record:
    """What one process wrote down of one server.

    Attributes:
        folder: Where.
        environment: Name of the environment.
        pid: The id of the process.
        began: When it took its first environment of any server, in seconds since 1970.
        alive: Whether the process is still there.
        ids: The environments it holds, or left open: when each was made, by id, the first first.
    """

    folder: Path
    environment: str
    pid: int
    began: float
    alive: bool
    ids: dict[int, float]

    @contextlib.contextmanager
    def claimed(self) -> Iterator[bool]:
        """Keep others from clearing it meanwhile; yields whether that could be done."""
        with _locked(self.folder.parent) as ours:
            yield ours
            if ours:
                _tidy(self.folder.parent)

    def strike(self, env_id: int) -> None:
        """Strike out an environment."""
        (self.folder / str(env_id)).unlink(missing_ok=True)


def records(server: str) -> list[Record]:
    """Return what the processes of this user and machine wrote down of a server, the oldest first.

    Args:
        server: Its base URL.
    """
    found = []
    for folder in (capacity.FOLDER / "held").glob(f"*/{folder_of(server).name}-*"):
        # One that is just being made, or taken away, is neither whole nor worth telling.
        with contextlib.suppress(OSError, ValueError, KeyError):
            about = json.loads((folder.parent / _ABOUT).read_text("ascii"))
            with _locked(folder.parent) as free:
                ids = _ids(folder)
            environment = unquote(folder.name.partition("-")[2])
            found.append(Record(folder, environment, about["pid"], about["began"], not free, ids))
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


def _tidy(process: Path) -> None:
    """Take away the folders of a process in which nothing is open, and its own if none is left."""
    with contextlib.suppress(OSError):
        servers = [folder for folder in process.iterdir() if folder.is_dir()]
        still_open = [folder for folder in servers if _ids(folder)]
        for folder in servers if still_open else [process]:
            if folder not in still_open:
                shutil.rmtree(folder, ignore_errors=True)


# One, unless the folder is changed, as tests do. Without a lock: were Ctrl-C to come just before it is given
# back, all other threads would wait for ever.
_processes: dict[Path, _Process] = {}


def _this_process() -> _Process:
    process = _processes.get(capacity.FOLDER)
    if process is None:
        made = _Process()
        process = _processes.setdefault(capacity.FOLDER, made)
        if process is not made:
            made.leave()  # another thread was faster
    return process


# Registered before the environments give back what they hold at the end (_base_env.py), and so run after it.
@atexit.register
def _leave_all() -> None:
    with contextlib.suppress(KeyError):  # another thread has taken the last
        while _processes:
            _processes.popitem()[1].leave()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_processes.clear)
