"""Places on a server that holds only so many environments, shared out among the processes of this machine.

A slot is a lock file in the folder for temporary files, one for each environment that a server can hold. The
system lets go of it when its process ends, however that ends. Beside it stands the id of the environment that
was last played in it, so that the next process goes on using that one.

Processes of other users, and on other machines, are not seen.
"""

from __future__ import annotations

import getpass
import hashlib
import tempfile
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from collections.abc import Callable

    from filelock import FileLock

__all__ = ["FOLDER", "Slot", "SlotState", "Slots", "folder_of", "look"]


def _digest(server: str) -> str:
    return hashlib.sha256(server.encode()).hexdigest()[:16]


def _user() -> str:
    """Return a name for the user that can stand in a file's name."""
    try:
        return _digest(getpass.getuser())
    except (KeyError, OSError):  # there is no such user in a bare container
        return "nobody"


FOLDER = Path(tempfile.gettempdir()) / f"agentgym-gym-{_user()}"
"""Where the lock files are."""


def folder_of(server: str) -> Path:
    """Return where the files about a server are, by whichever of its names it is called.

    Args:
        server: Its base URL.
    """
    url = urlsplit(server)
    host = "127.0.0.1" if url.hostname in {"localhost", "::1"} else url.hostname
    port = url.port or {"http": 80, "https": 443}.get(url.scheme)
    return FOLDER / _digest(f"{host}:{port}{url.path.rstrip('/')}")


class Slot:
    """A place on a server, ours until it is given back.

    Attributes:
        env_id: The environment last played in it, by any process; None if there was none.
    """

    def __init__(self, lock: FileLock, note: Path, on_release: Callable[[], None]) -> None:
        self._lock = lock
        self._note = note
        self._on_release = on_release
        self.env_id = _noted(note)

    def remember(self, env_id: int | None) -> None:
        """Note which environment is played in it, or that none is."""
        self.env_id = env_id
        self._note.write_text("" if env_id is None else str(env_id), "ascii")

    def release(self) -> None:
        """Give it back. May be called again."""
        self._lock.release()
        self._on_release()


class Slots:
    """All places on one server.

    Args:
        server: Its base URL.
        capacity: How many there are.
    """

    def __init__(self, server: str, capacity: int) -> None:
        self.capacity = capacity
        self._folder = folder_of(server)
        self._taken: set[int] = set()  # by us, so that nobody looks at each of them again and again

    def take(self) -> Slot | None:
        """Return a free slot, or None where all are taken."""
        from filelock import FileLock, Timeout  # noqa: PLC0415 - few servers need it

        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        for number in range(self.capacity):
            if number in self._taken:
                continue
            lock = FileLock(self._folder / f"{number}.lock", timeout=0, thread_local=False)
            try:
                lock.acquire()
            except Timeout:
                continue
            self._taken.add(number)
            return Slot(lock, self._folder / f"{number}.id", partial(self._taken.discard, number))
        return None


class SlotState(NamedTuple):
    """What is known of a place.

    Attributes:
        env_id: The environment last played in it; None if there was none.
        taken: Whether a process holds it.
    """

    env_id: int | None
    taken: bool


def look(server: str) -> list[SlotState]:
    """Return the places on a server that processes of this user and machine ever took.

    Args:
        server: Its base URL.
    """
    from filelock import FileLock, Timeout  # noqa: PLC0415 - few servers need it

    found = []
    folder = folder_of(server)
    numbers = {int(file.stem) for file in folder.glob("*.*") if file.stem.isdecimal()}
    for number in sorted(numbers):
        note = folder / f"{number}.id"
        lock = FileLock(note.with_suffix(".lock"), timeout=0, thread_local=False)
        try:
            lock.acquire()
        except Timeout:
            found.append(SlotState(_noted(note), taken=True))
        else:
            found.append(SlotState(_noted(note), taken=False))
            lock.release()
    return found


def _noted(note: Path) -> int | None:
    text = note.read_text("ascii") if note.exists() else ""
    return int(text) if text.isdecimal() else None
