"""Notice that a rollout worker of verl 0.9 has died: its trainer would wait for it for ever.

The trainers of verl 0.7 and 0.8 await the calls of their workers, and end with Ray's ``ActorDiedError``. In
verl 0.9 a worker only starts its episodes in such a call, and the trainer then polls its replay buffer.
"""

from __future__ import annotations

import importlib
import time
from collections.abc import Sequence
from typing import Any

__all__ = ["CHECK_SECONDS", "WorkerCheck", "WorkerDied"]

CHECK_SECONDS = 10.0
"""Seconds between two checks."""


class WorkerDied(RuntimeError):
    """A rollout worker has died, and the episodes that it played with it."""


class WorkerCheck:
    """Checks of verl's rollout workers, which wait for nothing.

    Args:
        workers: Ray's handles of the workers.
    """

    def __init__(self, workers: Sequence[Any]) -> None:
        self._workers = list(workers)
        self._calls: dict[int, Any] = {}  # without a reply so far, by the index of the worker
        self._next = 0.0

    def check(self) -> None:
        """Send an empty call to every worker at intervals, and look at the replies; return at once.

        Raises:
            WorkerDied: A worker is dead. The message has Ray's reason, with the name of the worker.
        """
        if time.monotonic() < self._next:
            return
        self._next = time.monotonic() + CHECK_SECONDS
        ray = importlib.import_module("ray")  # only where verl's trainer runs
        if self._calls:
            done, _ = ray.wait(list(self._calls.values()), num_returns=len(self._calls), timeout=0)
            for index, call in list(self._calls.items()):
                if call in done:
                    del self._calls[index]
                    _raise_if_dead(ray, call)
        for index, worker in enumerate(self._workers):
            if index not in self._calls:
                self._calls[index] = worker.__ray_ready__.remote()


def _raise_if_dead(ray: Any, call: Any) -> None:
    try:
        ray.get(call)
    except ray.exceptions.ActorDiedError as error:
        raise WorkerDied(
            "a rollout worker of verl has died, and its episodes with it: the run stops. "
            f"{' '.join(str(error).split())} If it was killed for its memory, play fewer episodes at once; "
            "trainer.resume_mode=auto resumes from the last checkpoint."
        ) from error
    except ray.exceptions.RayActorError:  # it cannot be reached now: it is called again
        return
