"""Slots: the places on a server with a fixed capacity, shared by the processes of this machine.

A slot is a lock file in the folder for temporary files; there is one for each environment that a server can
hold. The operating system releases the lock when its process ends, however it ends. A file beside it holds
the id of the environment that was last played in the slot, so that the next process reuses that environment.

Processes of other users and on other machines are not seen.
"""

from __future__ import annotations

import contextlib
import getpass
import hashlib
import tempfile
import threading
import weakref
from collections import deque
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlsplit

from agentgym_gym._threads import call_in_thread

if TYPE_CHECKING:
    from filelock import FileLock

__all__ = ["FOLDER", "Slot", "SlotState", "Slots", "folder_of", "slot_states"]


def _digest(server: str) -> str:
    return hashlib.sha256(server.encode()).hexdigest()[:16]


def _user() -> str:
    """Return a name for the user that is safe in a file name."""
    try:
        return _digest(getpass.getuser())
    except (KeyError, OSError):  # there is no such user in a bare container
        return "nobody"


FOLDER = Path(tempfile.gettempdir()) / f"agentgym-gym-{_user()}"
"""Where the lock files are."""


def folder_of(server: str) -> Path:
    """Return the folder of a server: the same one for all names of the local host. Touches no file.

    Args:
        server: Its base URL.
    """
    url = urlsplit(server)
    host = "127.0.0.1" if url.hostname in {"localhost", "::1"} else url.hostname
    port = url.port or {"http": 80, "https": 443}.get(url.scheme)
    return FOLDER / _digest(f"{host}:{port}{url.path.rstrip('/')}")


class Slot:
    """A place on a server that this process holds until it releases it.

    One that is dropped without `release` is free again, too: the garbage collector closes its lock file.

    Attributes:
        env_id: The environment last played in it, by any process; None if there was none.
    """

    def __init__(self, lock: FileLock, note: Path) -> None:
        self._lock = lock
        self._note = note
        self.env_id = self._saved = _read_id(note)

    @property
    def held(self) -> bool:
        """Whether it was not released yet."""
        return self._lock.is_locked

    def save(self) -> None:
        """Write :attr:`env_id` to disk, for the process that takes the slot next.

        Raises:
            OSError: It cannot be written.
        """
        if self.env_id != self._saved:
            self._note.write_text("" if self.env_id is None else str(self.env_id), "ascii")
            self._saved = self.env_id

    def release(self) -> None:
        """Save, and let others take the slot. May be called again.

        Raises:
            OSError: The id cannot be written; the slot is released all the same.
        """
        if self.held:
            try:
                self.save()
            finally:
                self._lock.release()


class Slots:
    """All places on one server.

    Args:
        server: Its base URL.
        capacity: How many there are.
    """

    def __init__(self, server: str, capacity: int) -> None:
        self.capacity = capacity
        self._folder = folder_of(server)
        # By number, so that nobody tries the locks of this process again and again. Weak: see `Slot`.
        self._slots: weakref.WeakValueDictionary[int, Slot] = weakref.WeakValueDictionary()
        self._leaving: deque[Slot] = deque()
        # Reentrant, because the garbage collector may run while it is held, and release a lease.
        self._lock = threading.RLock()

    def take(self) -> Slot | None:
        """Return a free slot, or None where all are taken. Touches files.

        Raises:
            OSError: The lock files cannot be made.
        """
        from filelock import FileLock, Timeout  # noqa: PLC0415 - few servers need it

        self._release_leaving()
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        for number in range(self.capacity):
            known = self._slots.get(number)
            if known is not None and known.held:
                continue
            lock = FileLock(self._folder / f"{number}.lock", timeout=0, thread_local=False)
            try:
                lock.acquire()
            except Timeout:
                continue
            slot = self._slots[number] = Slot(lock, self._folder / f"{number}.id")
            return slot
        return None

    def release_soon(self, slot: Slot) -> None:
        """Release a slot in another thread, and in any case before `take` looks for one.

        This is for code that may run in an event loop and cannot yield to the driver.
        """
        self._leaving.append(slot)
        call_in_thread(self._release_leaving)

    def _release_leaving(self) -> None:
        with self._lock:
            while self._leaving:
                with contextlib.suppress(OSError):
                    self._leaving.popleft().release()


class SlotState(NamedTuple):
    """The state of a slot, as any process sees it.

    Attributes:
        env_id: The environment last played in it; None if there was none.
        taken: Whether a process holds it.
    """

    env_id: int | None
    taken: bool


def slot_states(server: str) -> list[SlotState]:
    """Return the slots of a server that processes of this user and machine ever took. Touches files.

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
            found.append(SlotState(_read_id(note), taken=True))
        else:
            found.append(SlotState(_read_id(note), taken=False))
            lock.release()
    return found


def _read_id(note: Path) -> int | None:
    """Return the id in a file; None if there is none."""
    text = note.read_text("ascii") if note.exists() else ""
    return int(text) if text.isdecimal() else None
