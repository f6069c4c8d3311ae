"""The folder with the slots and journals of a user's processes on this machine."""

from __future__ import annotations

import getpass
import hashlib
import tempfile
from pathlib import Path
from urllib.parse import urlsplit

__all__ = ["FOLDER", "base_folder", "folder_name"]


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


def base_folder() -> Path:
    """Return the root folder of all files. May touch files: Python tests which folders are writable.

    Raises:
        OSError: There is no writable folder for temporary files.
    """
    return FOLDER or Path(tempfile.gettempdir()) / f"agentgym-gym-{_user()}"


def folder_name(server: str) -> str:
    """Return the name of a server's folder, the same for all names of the local host. Touches no file.

    Args:
        server: Its base URL.
    """
    url = urlsplit(server)
    host = "127.0.0.1" if url.hostname in {"localhost", "::1"} else url.hostname
    port = url.port or {"http": 80, "https": 443}.get(url.scheme)
    return _digest(f"{host}:{port}{url.path.rstrip('/')}")
