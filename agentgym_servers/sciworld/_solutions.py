"""Solutions of the tasks: the gold paths of the simulator, made by a Java process of this program.

A gold path is a list of actions that the simulator finds by playing the task itself. It is found once in a
program, in about a second.
"""

from __future__ import annotations

import contextlib
import threading
import weakref
from functools import cache

from agentgym_gym.envs.sciworld_tasks import task_of
from agentgym_servers.sciworld._shorter import shorter
from agentgym_servers.sciworld._simulator import JavaProcess, SimulatorExited

__all__ = ["MAX_TURNS", "shortened", "solution"]

MAX_TURNS = 30
"""The turn limit of the environment, which a solution should not exceed."""

_HEAP_MB = 512


@cache
def solution(task_id: int) -> tuple[str, ...]:
    """Return the actions that win a task, or would win it if the turn limit allowed it.

    Raises:
        LookupError: There is no such task.
        SetupError: Java or a package is missing.
    """
    task = task_of(task_id)
    return shortened(_finder.find(task.kind, task.variation))


def shortened(path: list[str]) -> tuple[str, ...]:
    """Return a path, made shorter if it exceeds the turn limit."""
    return tuple(path if len(path) <= MAX_TURNS else shorter(path))


class _Finder:
    """The Java process that finds gold paths, started on first use and ended at exit."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: JavaProcess | None = None

    def find(self, kind: str, variation: int) -> list[str]:
        with self._lock:
            with contextlib.suppress(SimulatorExited):
                return self._find(kind, variation)
            self._process = None
            return self._find(kind, variation)

    def _find(self, kind: str, variation: int) -> list[str]:
        if self._process is None or not self._process.runs:
            self._process = JavaProcess(_HEAP_MB)
            weakref.finalize(self._process, JavaProcess.close, self._process)
            self._simulator = self._process.simulator()
        return self._simulator.gold_path(kind, variation)


_finder = _Finder()
