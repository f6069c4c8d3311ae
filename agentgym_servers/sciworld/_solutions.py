"""Solutions of the tasks: the gold paths of the simulator, made by a Java process of this program.

A gold path is a list of actions that the simulator finds by playing the task itself. It is found once in a
program, in about a second; a path that exceeds the turn limit is made shorter, which may take ten.
"""

from __future__ import annotations

import contextlib
import threading
import weakref
from collections.abc import Sequence
from functools import cache

from agentgym_gym.envs.sciworld_tasks import UNWINNABLE, SciWorldTask, task_of
from agentgym_servers.sciworld._game import SciWorldGame
from agentgym_servers.sciworld._shortening import shorter
from agentgym_servers.sciworld._simulator import JavaProcess, Simulator, SimulatorExited

__all__ = ["MAX_TURNS", "WON", "find_solution", "play", "solution"]

MAX_TURNS = 30
"""The turn limit of the environment, which a solution should not exceed."""

WON = 100
"""The score of a task that is solved."""

_HEAP_MB = 512


@cache
def solution(task_id: int) -> tuple[str, ...]:
    """Return the actions that win a task, or would win it if the turn limit allowed it.

    Raises:
        LookupError: There is no such task.
        SetupError: Java or a package is missing.
    """
    # Trimming takes a minute for a task that cannot be won, and `_play_solutions` has tried it in vain.
    return _finder.find(task_of(task_id), trim=task_id not in UNWINNABLE)


def find_solution(task: SciWorldTask, simulator: Simulator, *, trim: bool = True) -> tuple[str, ...]:
    """Return the gold path of a task, made shorter if it exceeds the turn limit.

    Args:
        task: The task.
        simulator: Finds the path, and plays shorter ones.
        trim: Whether actions that a path is won without are left out, which are found by playing.
    """
    path = simulator.gold_path(task.kind, task.variation)
    if len(path) > MAX_TURNS:
        path = shorter(path)
        if trim:
            path = _without_needless(path, task, simulator)
    return tuple(path)


def _without_needless(path: list[str], task: SciWorldTask, simulator: Simulator) -> list[str]:
    """Leave out actions, then pairs and triples of them, without which the task is scored at least as high.

    The first ones come first, since the limit of moves may keep the last ones from being played. It ends when
    the path wins within the turn limit. A path that never wins stays whole.
    """

    def played(path: list[str]) -> tuple[int, list[str]]:
        """Return the score, and the path without the actions after a victory."""
        game = play(path, task, simulator)
        return game.last.score, path[: len(game.actions)] if game.last.score == WON else path

    whole = path
    best, path = played(path)
    for count in (1, 2, 3):
        start = 0
        while start + count <= len(path) and (len(path) > MAX_TURNS or best < WON):
            score, less = played([*path[:start], *path[start + count :]])
            if score >= best:
                best, path = score, less
            else:
                start += 1
    return path if best == WON else whole


def play(path: Sequence[str], task: SciWorldTask, simulator: Simulator) -> SciWorldGame:
    """Play a path until the game ends, and return the game."""
    game = SciWorldGame.start(task, simulator)
    for action in path:
        if game.done:
            break
        game.play(action, simulator)
    return game


class _Finder:
    """The Java process that finds gold paths, started on first use and ended at exit."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: JavaProcess | None = None

    def find(self, task: SciWorldTask, *, trim: bool) -> tuple[str, ...]:
        with self._lock:
            with contextlib.suppress(SimulatorExited):
                return self._find(task, trim)
            self._process = None
            return self._find(task, trim)

    def _find(self, task: SciWorldTask, trim: bool) -> tuple[str, ...]:
        if self._process is None or not self._process.runs:
            self._process = JavaProcess(_HEAP_MB)
            weakref.finalize(self._process, JavaProcess.close, self._process)
            self._simulator = self._process.simulator()
        return find_solution(task, self._simulator, trim=trim)


_finder = _Finder()
