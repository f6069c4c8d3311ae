"""Files that a reader finds whole: the earlier version or the new one."""

from __future__ import annotations

import contextlib
import os
import re
import socket
from collections.abc import Iterator
from pathlib import Path

__all__ = ["hidden_part", "replaces", "sync_to_disk"]


@contextlib.contextmanager
def replaces(path: Path) -> Iterator[Path]:
    """Give the path of a temporary file in the same folder, which takes the place of a file at the end.

    It is removed if the block raises.

    Args:
        path: The file to replace, or to make.
    """
    part = hidden_part(path)
    try:
        yield part
        sync_to_disk(part)
        part.replace(path)
    finally:
        with contextlib.suppress(OSError):
            part.unlink(missing_ok=True)


def hidden_part(path: Path) -> Path:
    """Return the path of a temporary file beside a file, which no other process or machine uses."""
    host = re.sub(r"[^\w.]+", "-", socket.gethostname())[:80]
    return path.with_name(f".{path.name}.{host}-{os.getpid()}.part")


def sync_to_disk(path: Path) -> None:
    """Wait until what was written to a file is on disk.

    Else a crash of the machine may keep its new name and lose its content.
    """
    descriptor = os.open(path, os.O_RDWR)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
