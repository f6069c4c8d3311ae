"""The output folders of ``agentgym eval`` without ``--out``: below ``runs/``, with the time in the name."""

from __future__ import annotations

import contextlib
import itertools
import re
import time
from collections.abc import Iterator
from pathlib import Path

from agentgym_gym.errors import BadOption

__all__ = ["folder_name", "latest", "reserved"]

_RUNS = Path("runs")
_STAMP = re.compile(r"-(\d{8}T\d{6}Z)(?:-(\d+))?$")


def folder_name(text: str) -> str:
    """Convert a text to a valid folder name."""
    return re.sub(r"[^\w.-]+", "_", text).strip("._")[:120] or "run"


@contextlib.contextmanager
def reserved(name: str) -> Iterator[Path]:
    """Create a new folder such as ``runs/NAME-20261125T221530Z``, and remove it at the end if it is empty.

    No two runs get the same folder, since an existing one cannot be created: the next one gets ``-2``.

    Args:
        name: The name of the run, a valid folder name.

    Raises:
        BadOption: The folder cannot be created.
    """
    try:
        _RUNS.mkdir(exist_ok=True)
        folder = next(filter(_created, _candidates(f"{name}-{_now()}")))
    except OSError as error:
        raise BadOption(
            f"cannot write to {_RUNS.absolute()}: {error.strerror or error}; give another folder by --out"
        ) from error
    try:
        yield folder
    finally:
        with contextlib.suppress(OSError):
            folder.rmdir()  # fails unless it is empty


def latest(name: str) -> Path | None:
    """Return the newest folder that `reserved` created for this name, or None."""
    found: list[tuple[str, int, Path]] = []
    for folder in _RUNS.glob("*"):
        stamp = _STAMP.search(folder.name)
        if stamp is not None and folder.name[: stamp.start()] == name:
            found.append((stamp[1], int(stamp[2] or 1), folder))
    return max(found)[-1] if found else None


def _now() -> str:
    return time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())


def _candidates(stamped: str) -> Iterator[Path]:
    yield _RUNS / stamped
    yield from (_RUNS / f"{stamped}-{number}" for number in itertools.count(2))


def _created(folder: Path) -> bool:
    try:
        folder.mkdir()
    except FileExistsError:
        return False
    return True
