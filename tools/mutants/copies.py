"""Copies of the repository, in which tests run while the repository itself stays as it is."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mutants.sites import Mutant

_times = iter(range(1_000_000_000, 2_000_000_000))


def copy_tree(root: Path, tree: Path) -> None:
    """Copy what git lists in a repository, tracked or not; what has not changed keeps its compiled code."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=root, check=True, capture_output=True, text=True).stdout
    files = {name for name in listed.split("\0") if name and (root / name).is_file()}
    for old in tree.rglob("*"):
        if old.is_file() and old.suffix != ".pyc" and old.relative_to(tree).as_posix() not in files:
            old.unlink()
    for name in sorted(files):
        source, target = root / name, tree / name
        if not target.exists() or target.read_bytes() != source.read_bytes():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, target)


@contextlib.contextmanager
def planted(mutant: Mutant, tree: Path) -> Iterator[None]:
    """Put the mutant into the copy of the repository, and take it out again."""
    file = tree / mutant.file
    with replaced(file, mutant.apply(file.read_bytes())):
        yield


@contextlib.contextmanager
def replaced(file: Path, content: bytes) -> Iterator[None]:
    """Give a file of the copy another content, and its own again."""
    source, times = file.read_bytes(), file.stat()
    file.write_bytes(content)
    unused = next(_times)  # so that Python takes no compiled code of another content for this one's
    os.utime(file, (unused, unused))
    try:
        yield
    finally:
        file.write_bytes(source)
        os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))
