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
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from filelock import FileLock

__all__ = ["FOLDER", "Slot", "Slots"]


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


class Slot:
    """A place on a server, ours until it is given back.

    Attributes:
        env_id: The environment last played in it, by any process; None if there was none.
    """

    def __init__(self, lock: FileLock, note: Path) -> None:
        self._lock = lock
        self._note = note
        text = note.read_text("ascii") if note.exists() else ""
        self.env_id = int(text) if text.isdecimal() else None

    def remember(self, env_id: int | None) -> None:
        """Note which environment is played in it, or that none is."""
        self.env_id = env_id
        self._note.write_text("" if env_id is None else str(env_id), "ascii")

    def release(self) -> None:
        """Give it back. May be called again."""
        self._lock.release()


class Slots:
    """All places on one server.

    Args:
        server: Its base URL.
        capacity: How many there are.
    """

    def __init__(self, server: str, capacity: int) -> None:
        self.capacity = capacity
        self._folder = FOLDER / _digest(server)

    def take(self) -> Slot | None:
        """Return a free slot, or None where all are taken."""
        from filelock import FileLock, Timeout  # noqa: PLC0415 - few servers need it

        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        for number in range(self.capacity):
            lock = FileLock(self._folder / f"{number}.lock", timeout=0, thread_local=False)
            try:
                lock.acquire()
            except Timeout:
                continue
            return Slot(lock, self._folder / f"{number}.id")
        return None
