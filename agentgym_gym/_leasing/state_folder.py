"""The folder in which the processes of a user on this machine keep slots and journals."""

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
    """Return a name for the user that is safe in a file name."""
    try:
        return _digest(getpass.getuser())
    except (KeyError, OSError):  # there is no such user in a bare container
        return "nobody"


FOLDER: Path | None = None
"""Where the files are, if not in a folder of the user below that for temporary files."""


def base_folder() -> Path:
    """Return the folder below which all files are. May touch files: Python tries where it can write.

    Raises:
        OSError: There is no folder for temporary files that can be written.
    """
    return FOLDER or Path(tempfile.gettempdir()) / f"agentgym-gym-{_user()}"


def folder_name(server: str) -> str:
    """Return the name of a server's folder: the same one for all names of the local host. Touches no file.

    Args:
        server: Its base URL.
    """
    url = urlsplit(server)
    host = "127.0.0.1" if url.hostname in {"localhost", "::1"} else url.hostname
    port = url.port or {"http": 80, "https": 443}.get(url.scheme)
    return _digest(f"{host}:{port}{url.path.rstrip('/')}")
