"""Close the environments of verl 0.9's rollout workers at the end of a run.

Ray kills the workers then, and a killed process closes no environment. The asynchronous trainers also play
more episodes than they train with, so the workers are in the middle of some: these are cancelled, and give
their environments back.
"""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable, Sequence
from typing import Any

from agentgym_gym.rollout import close_all

__all__ = ["CLOSE_SECONDS", "close_environments"]

CLOSE_SECONDS = 30.0
"""Maximum seconds until all cancelled episodes have ended, and as many for a call of a worker."""

_POLL_SECONDS = 0.2


def close_environments(workers: Sequence[Any]) -> int:
    """Cancel the episodes of verl's rollout workers, and close the environments.

    Args:
        workers: Ray's handles of the workers.

    Returns:
        The number of groups of episodes that were cancelled.
    """
    ray = importlib.import_module("ray")  # only where verl's trainer runs
    until = time.monotonic() + CLOSE_SECONDS
    cancelled = left = _sum(ray, workers, _cancel)
    while left and time.monotonic() < until:
        time.sleep(_POLL_SECONDS)
        left = _sum(ray, workers, _count)
    _sum(ray, workers, _close)
    return cancelled


def _sum(ray: Any, workers: Sequence[Any], function: Callable[[Any], int]) -> int:
    """Call a function with each worker, in its own process and event loop; return the sum of the results."""
    total = 0
    for call in [worker.__ray_call__.remote(function) for worker in workers]:
        try:
            total += ray.get(call, timeout=CLOSE_SECONDS)
        except ray.exceptions.RayError:  # it is dead, and its episodes with it, or it is blocked
            continue
    return total


def _running(worker: Any) -> list[Any]:
    """Return the tasks of a worker that play a group each."""
    return [task for task in getattr(worker, "background_tasks", ()) if not task.done()]


def _count(worker: Any) -> int:
    return len(_running(worker))


def _cancel(worker: Any) -> int:
    tasks = _running(worker)
    for task in tasks:
        task.cancel()
    return len(tasks)


def _close(_: Any) -> int:
    close_all()
    return 0
