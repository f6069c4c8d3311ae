"""Files: replaced as a whole, so that a reader sees the old or the new contents; found by their names."""

from __future__ import annotations

import contextlib
import fnmatch
import os
import re
import socket
from collections.abc import Iterator
from pathlib import Path

__all__ = ["find_files", "hidden_part", "replaces", "sync_to_disk"]


def find_files(folder: Path, pattern: str) -> Iterator[Path]:
    """Yield the files in a folder and below it whose name matches; folders that disappear are skipped.

    ``Path.rglob`` raises FileNotFoundError then.
    """
    for parent, _, names in os.walk(folder):
        yield from (Path(parent, name) for name in fnmatch.filter(names, pattern))


@contextlib.contextmanager
def replaces(path: Path) -> Iterator[Path]:
    """Yield the path of a temporary file in the same folder, which replaces a file at the end of the block.

    It is removed if the block raises.

    Args:
        path: The file to replace or create.
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
    """Return the path of a temporary file next to a file, unique to this process and machine."""
    host = re.sub(r"[^\w.]+", "-", socket.gethostname())[:80]
    return path.with_name(f".{path.name}.{host}-{os.getpid()}.part")


def sync_to_disk(path: Path) -> None:
    """Wait until the contents of a file are on disk.

    Otherwise a crash of the machine may preserve its new name and lose its contents.
    """
    descriptor = os.open(path, os.O_RDWR)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
