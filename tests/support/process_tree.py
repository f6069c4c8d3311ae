"""The processes that a server has started, by /proc."""

from __future__ import annotations

import contextlib
from collections.abc import Collection
from pathlib import Path

__all__ = ["alive", "descendants", "processor_ticks"]


def _processes() -> dict[int, tuple[int, str]]:
    """Return the parent and the state of each process by its id."""
    found = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):  # it ended meanwhile
            state, parent = path.read_text("utf-8", "replace").rpartition(")")[2].split()[:2]
            found[int(path.parent.name)] = (int(parent), state)
    return found


def descendants(pid: int) -> set[int]:
    """Return the processes below one."""
    everything, found = _processes(), {pid}
    while more := {child for child, (parent, _) in everything.items() if parent in found} - found:
        found |= more
    return found - {pid}


def alive(pids: Collection[int]) -> set[int]:
    """Return the processes that have not ended."""
    everything = _processes()
    return {pid for pid in pids if everything.get(pid, (0, "Z"))[1] != "Z"}


def processor_ticks(pids: Collection[int]) -> int:
    """Return the processor time of running processes, in ticks of 10 ms."""
    stats = [Path(f"/proc/{pid}/stat").read_text("utf-8", "replace") for pid in pids]
    return sum(int(ticks) for stat in stats for ticks in stat.rpartition(")")[2].split()[11:13])
