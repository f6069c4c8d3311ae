"""A bounded pool of Java processes that play the games of all environments.

Each process has one thread and a limited number of simulators. A game keeps its simulator until another game
needs one and none is free. Then the least recently used game loses its simulator, and its next action first
replays its actions in another one. The games of a process that has ended are replayed in the same way. Memory
is therefore bounded for any number of environments, and no environment depends on a process.
"""

from __future__ import annotations

import logging
import os
import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from agentgym_gym.errors import SetupError
from agentgym_servers._frame.app import Failed
from agentgym_servers._frame.serial_thread import SerialThread
from agentgym_servers.sciworld._game import MAX_ACTIONS, SciWorldGame, replay
from agentgym_servers.sciworld._simulator import JavaProcess, Simulator, SimulatorError, SimulatorExited

if TYPE_CHECKING:
    import asyncio

    from agentgym_gym.envs.sciworld_tasks import SciWorldTask

__all__ = ["JavaWorker", "JavaWorkerPool"]

logger = logging.getLogger("agentgym_servers")

SIMULATORS = 128
"""The number of simulators in one Java process: each takes up to a few MB while its game is played."""

HEAP_MB = 768
"""Maximum size of the heap of one Java process."""

_ATTEMPTS = 2  # at one request: a process that ends is replaced once

T = TypeVar("T")


class JavaWorker:
    """One Java process, started on first use and restarted when it has ended.

    Args:
        simulators: The maximum number of simulators.
        heap_mb: Maximum size of the heap of the process, in MB.
        simplifications: The simplifications of its simulators.
    """

    def __init__(
        self, simulators: int = SIMULATORS, heap_mb: int = HEAP_MB, simplifications: str = ""
    ) -> None:
        self._simplifications = simplifications
        self._max_simulators = simulators
        self._heap_mb = heap_mb
        self._lock = threading.Lock()  # for starts and ends, because `close` runs in another thread
        self._closed = False
        self._process: JavaProcess | None = None
        self._free: list[Simulator] = []
        self._held: OrderedDict[SciWorldGame, Simulator] = OrderedDict()  # least recently used first

    @property
    def pid(self) -> int | None:
        """The id of the Java process; None if none runs."""
        return None if self._process is None else self._process.pid

    def start(self, task: SciWorldTask, last: SciWorldGame | None = None) -> SciWorldGame:
        """Start a task, in the simulator of an environment's last game if it still has one.

        Raises:
            Failed: The simulator cannot play it.
        """

        def begin() -> SciWorldGame:
            if last is not None:
                self.drop(last)
            simulator = self._take()
            try:
                game = SciWorldGame.start(task, simulator)
            except SimulatorError:
                self._free.append(simulator)
                raise
            self._held[game] = simulator
            return game

        return self._attempt(begin)

    def play(self, game: SciWorldGame, action: str) -> None:
        """Play an action of a game.

        Raises:
            Failed: The simulator cannot play it, or the game had too many actions.
        """
        if len(game.actions) >= MAX_ACTIONS:
            raise Failed(f"The task has had {MAX_ACTIONS} actions, which is the limit: reset it.")
        self._attempt(lambda: game.play(action, self._simulator_of(game)))

    def view(self, game: SciWorldGame, look: Callable[[Simulator], T]) -> T:
        """Return what a function reads from the simulator of a game.

        Raises:
            Failed: The simulator raised an error.
        """
        return self._attempt(lambda: look(self._simulator_of(game)))

    def drop(self, game: SciWorldGame) -> None:
        """Free the simulator of a game."""
        simulator = self._held.pop(game, None)
        if simulator is not None:
            self._free.append(simulator)

    def close(self) -> None:
        """End the process, and start no other one."""
        with self._lock:
            self._closed = True
            self._end()

    def _attempt(self, work: Callable[[], T]) -> T:
        for attempt in range(_ATTEMPTS):
            try:
                return work()
            except SimulatorError as error:
                raise Failed(str(error)) from error
            except SetupError as error:
                logger.error("%s", error)  # noqa: TRY400 - the message has the remedy; a traceback hides it
                raise Failed(str(error)) from error
            except SimulatorExited as error:
                logger.warning("the SciWorld server starts another Java process: %s", error)
                with self._lock:
                    self._end()
                if attempt + 1 == _ATTEMPTS:
                    raise Failed("The Java process that plays this task ended twice.") from error
        raise AssertionError("unreachable")

    def _simulator_of(self, game: SciWorldGame) -> Simulator:
        """Return the simulator of a game, which plays the actions of the game again if it is another one."""
        if game in self._held:
            self._held.move_to_end(game)
            return self._held[game]
        simulator = self._take()
        try:
            same = replay(game, simulator)
        except SimulatorError:
            self._free.append(simulator)
            raise
        if not same:
            self._free.append(simulator)
            raise Failed("The task could not be restored: played again, it took another course. Reset it.")
        self._held[game] = simulator
        return simulator

    def _take(self) -> Simulator:
        """Return a simulator without a game, or take it from the least recently used game."""
        with self._lock:
            if self._closed:
                raise Failed("The server stops.")
            if self._process is not None and not self._process.runs:
                self._end()
            if self._process is None:
                self._process = JavaProcess(self._heap_mb)
        if self._free:
            return self._free.pop()
        if len(self._held) < self._max_simulators:
            return self._process.simulator(self._simplifications)
        return self._held.popitem(last=False)[1]

    def _end(self) -> None:
        process, self._process = self._process, None
        self._free.clear()
        self._held.clear()
        if process is not None:
            process.close()


class JavaWorkerPool:
    """Workers, each with one thread; a game stays with its worker.

    Args:
        count: The number of workers; None for the number of processors, at most four.
        simplifications: The simplifications of their simulators.
    """

    def __init__(self, count: int | None = None, simplifications: str = "") -> None:
        count = count or min(4, os.cpu_count() or 1)
        self._workers = [(JavaWorker(simplifications=simplifications), SerialThread()) for _ in range(count)]
        self.close = weakref.finalize(self, _close, [worker for worker, _ in self._workers])
        """Ends all processes; runs at the latest when this object is collected or the program exits."""

    @property
    def process_ids(self) -> set[int]:
        """The ids of the running Java processes."""
        return {worker.pid for worker, _ in self._workers if worker.pid is not None}

    async def run(self, env: int, turn: asyncio.Lock, work: Callable[[JavaWorker], T]) -> T:
        """Return the result of a function, which is called in the thread of an environment's worker.

        Args:
            env: The number of the environment, which selects the worker.
            turn: The lock of the environment, held until the function returns.
            work: The function.
        """
        worker, thread = self._workers[env % len(self._workers)]
        return await thread.run(turn, work, worker)


def _close(workers: list[JavaWorker]) -> None:
    for worker in workers:
        worker.close()
