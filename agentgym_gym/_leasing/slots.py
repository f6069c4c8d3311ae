"""Slots: the capacity of a server with a fixed limit, shared by the processes of this machine.

A slot is a lock file in the folder for temporary files, one for each environment that the server can run. The
operating system releases the lock when its process ends for any reason. A file beside it contains the id of
the slot's last environment, so that the next process reuses that environment. Both are written when a slot is
taken, so that a folder without write access is noticed before an environment is created.

Processes of other users and on other machines are not taken into account.
"""

from __future__ import annotations

import contextlib
import errno
import logging
import threading
import weakref
from collections import deque
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from agentgym_gym._leasing import state_folder
from agentgym_gym._logging import log
from agentgym_gym._text import reason
from agentgym_gym._threads import call_in_thread
from agentgym_gym.errors import SetupError

if TYPE_CHECKING:
    from filelock import FileLock

__all__ = ["SlotLock", "SlotState", "Slots", "slot_states"]

_WIDTH = 40  # of an id in its file, so that a later id needs no more disk space


class SlotLock:
    """A slot on a server that this process holds until it releases it.

    A slot that is garbage-collected without `release` is free again, too, because its lock file is closed.

    Attributes:
        env_id: The last environment in it, of any process; None if there was none.
    """

    def __init__(self, lock: FileLock, note: Path) -> None:
        self._lock = lock
        self._note = note
        self.env_id = self._saved = _read_id(note)

    @property
    def held(self) -> bool:
        """Whether it has not been released yet."""
        return self._lock.is_locked

    def save(self) -> None:
        """Write :attr:`env_id` to disk, for the process that takes the slot next.

        If that fails, which is logged, the id is removed here, too: this process then keeps the environment
        for its own later episodes.
        """
        if self.env_id != self._saved:
            try:
                _write_id(self._note, self.env_id)
            except OSError as error:
                log(logging.WARNING, "slot not saved", folder=str(self._note.parent), message=reason(error))
                self.env_id = None
            self._saved = self.env_id

    def release(self) -> None:
        """Save the id, and free the slot. May be called again."""
        if self.held:
            try:
                self.save()
            finally:
                self._lock.release()


class Slots:
    """All slots on one server.

    Args:
        server: Its base URL.
        capacity: Number of slots.
    """

    def __init__(self, server: str, capacity: int) -> None:
        self.capacity = capacity
        self._name = state_folder.folder_name(server)
        # By number, to skip the locks that this process holds. Weak: see `SlotLock`.
        self._slots: weakref.WeakValueDictionary[int, SlotLock] = weakref.WeakValueDictionary()
        self._leaving: deque[SlotLock] = deque()
        # Reentrant, because the garbage collector may run while the lock is held, and release a lease.
        self._lock = threading.RLock()

    def take(self) -> SlotLock | None:
        """Return a free slot, or None if all are taken. Touches files.

        Raises:
            SetupError: The files cannot be written; the message has the folder, the reason and a remedy.
        """
        self._release_leaving()
        folder: Path | None = None
        try:
            folder = state_folder.base_folder(create=True) / self._name
            return self._take(folder)
        except (OSError, NotImplementedError) as error:  # the latter if the file system has no locks
            raise _cannot_share(folder, error) from error

    def _take(self, folder: Path) -> SlotLock | None:
        from filelock import FileLock, Timeout  # noqa: PLC0415 - few servers need it

        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        for number in range(self.capacity):
            known = self._slots.get(number)
            if known is not None and known.held:
                continue
            lock = FileLock(folder / f"{number}.lock", timeout=0, thread_local=False)
            try:
                lock.acquire()
            except Timeout:
                continue
            try:
                slot = SlotLock(lock, folder / f"{number}.id")
                _write_id(folder / f"{number}.id", slot.env_id)
            except BaseException:
                lock.release()
                raise
            self._slots[number] = slot
            return slot
        return None

    def release_soon(self, slot: SlotLock) -> None:
        """Release a slot in another thread, at the latest before `take` looks for one.

        This is for code that may run in an event loop and cannot yield to the driver.
        """
        self._leaving.append(slot)
        call_in_thread(self._release_leaving)

    def _release_leaving(self) -> None:
        with self._lock:
            while self._leaving:
                with contextlib.suppress(OSError, IndexError):
                    self._leaving.popleft().release()


class SlotState(NamedTuple):
    """The state of a slot, as visible to any process.

    Attributes:
        env_id: The last environment in it; None if there was none.
        taken: Whether a process holds it.
    """

    env_id: int | None
    taken: bool


def slot_states(server: str) -> list[SlotState]:
    """Return all slots of a server that this user's processes on this machine ever took. Touches files.

    Args:
        server: Its base URL.

    Raises:
        OSError: The folder is not safe to read.
    """
    from filelock import FileLock  # noqa: PLC0415 - few servers need it

    found = []
    folder = state_folder.base_folder() / state_folder.folder_name(server)
    numbers = {int(file.stem) for file in folder.glob("*.*") if file.stem.isdecimal()}
    for number in sorted(numbers):
        note = folder / f"{number}.id"
        lock = FileLock(note.with_suffix(".lock"), timeout=0, thread_local=False)
        taken = True  # also if the lock cannot be tried
        with contextlib.suppress(OSError, NotImplementedError):  # filelock's timeout is an OSError
            lock.acquire()
            taken = False
            lock.release()
        found.append(SlotState(_read_id(note), taken=taken))
    return found


def _read_id(note: Path) -> int | None:
    """Return the id in a file; None if it is missing or invalid."""
    try:
        text = note.read_bytes()[:_WIDTH].decode("ascii").strip()
    except (OSError, ValueError):
        return None
    return int(text) if text.isdecimal() else None


def _write_id(note: Path, env_id: int | None) -> None:
    """Overwrite the id in a file, padded to a fixed width."""
    text = "" if env_id is None else str(env_id)
    with note.open("r+b" if note.exists() else "wb", buffering=0) as file:
        file.write(text.ljust(_WIDTH).encode("ascii"))


def _cannot_share(folder: Path | None, error: Exception) -> SetupError:
    """Return the error for a folder without write access."""
    where = "any folder for temporary files" if folder is None else f"the folder {folder}"
    full = {errno.EMFILE, errno.ENFILE}
    if isinstance(error, OSError) and error.errno in full:
        advice = "close files or connections, or allow more of them (ulimit -n)"
    else:
        advice = (
            "Set the variable TMPDIR (on Windows TEMP) to a folder on a local disk that can be written, the "
            "same one for all processes that play on the server"
        )
    return SetupError(
        f"the places on a server that holds few environments are shared by lock files, and {where} cannot "
        f"be used for them: {reason(error)}. {advice}"
    )
