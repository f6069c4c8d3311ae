"""The folder with the slots and journals of a user's processes on this machine."""

from __future__ import annotations

import errno
import getpass
import hashlib
import os
import stat
import tempfile
from pathlib import Path
from urllib.parse import urlsplit

__all__ = ["FOLDER", "base_folder", "folder_name", "location"]


def _digest(server: str) -> str:
    return hashlib.sha256(server.encode()).hexdigest()[:16]


def _user() -> str:
    """Return a hash of the user name that is safe in a file name."""
    try:
        return _digest(getpass.getuser())
    except (KeyError, OSError):  # a bare container may have no such user
        return "nobody"


FOLDER: Path | None = None
"""The folder to use instead of the user's own one in the folder for temporary files."""


def location() -> Path:
    """Return the path of the root folder. May touch files: Python tests which folders are writable.

    Raises:
        OSError: There is no writable folder for temporary files.
    """
    return FOLDER or Path(tempfile.gettempdir()) / f"agentgym-gym-{_user()}"


def base_folder(*, create: bool = False) -> Path:
    """Return the root folder of all files. Touches files.

    Everybody can write to the folder for temporary files, so another user may have created this one first, to
    read or change the ids in it.

    Args:
        create: Whether to create it.

    Raises:
        OSError: There is no writable folder for temporary files, the folder cannot be created, or another
            user can write to it.
    """
    folder = location()
    if create:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if hasattr(os, "getuid") and (create or os.path.lexists(folder)):
        _check_owner(folder)  # not on Windows, where each user has a folder for temporary files
    return folder


def _check_owner(folder: Path) -> None:
    about = folder.lstat()
    if not stat.S_ISDIR(about.st_mode) or about.st_uid != os.getuid():
        problem = "it is no folder, a link, or another user's"
    elif about.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        problem = f"other users can write to it, as its mode is {stat.S_IMODE(about.st_mode):o}"
    else:
        return
    message = f"unsafe folder: {problem}; remove it, or set TMPDIR to a folder of your own"
    raise PermissionError(errno.EPERM, message, str(folder))


def folder_name(server: str) -> str:
    """Return the name of a server's folder, the same for all names of the local host. Touches no file.

    Args:
        server: Its base URL.
    """
    url = urlsplit(server)
    host = "127.0.0.1" if url.hostname in {"localhost", "::1"} else url.hostname
    port = url.port or {"http": 80, "https": 443}.get(url.scheme)
    return _digest(f"{host}:{port}{url.path.rstrip('/')}")
