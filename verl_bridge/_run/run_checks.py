"""Watch a run of verl 0.9's trainer: dead workers, failing groups, and environments that are open at its end.

:mod:`verl_bridge.trainer` wraps verl's functions with `fit`, `poll` and `evict`.

- A rollout worker that died: verl 0.7 and 0.8 await the calls of their workers, and end with Ray's
  ``ActorDiedError``. In verl 0.9 a worker only starts its episodes in such a call, and the trainer then polls
  its replay buffer, indefinitely.
- Groups that fail: an error that leaves an agent loop, such as a row without an environment, fails the whole
  group of its prompt. The asynchronous trainers replace it by a group of another prompt, so with a wrong
  setting they would keep replacing groups, and never make a step.
- The end: Ray kills the workers, and a killed process closes no environment. The asynchronous trainers also
  play more episodes than they train with, so the workers are in the middle of some: these are cancelled, and
  return their environments.
"""

from __future__ import annotations

import contextlib
import importlib
import logging
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextvars import ContextVar
from typing import Any

from agentgym_gym.rollout import close_all

__all__ = [
    "CHECK_SECONDS",
    "CLOSE_SECONDS",
    "MOST_FAILED",
    "EpisodesFailed",
    "FailedGroups",
    "WorkerCheck",
    "WorkerDied",
    "close_environments",
    "evict",
    "fit",
    "log",
    "poll",
    "warned",
]

log = logging.getLogger("verl.verl_bridge")
"""A child of verl's logger: verl's trainer process prints no other."""

CHECK_SECONDS = 10.0
"""Seconds between two checks."""

MOST_FAILED = 64
"""Groups that may fail in a row, without one that finishes."""

CLOSE_SECONDS = 30.0
"""Maximum seconds until all cancelled episodes have ended, and as many for a call of a worker."""

_POLL_SECONDS = 0.2

_worker_check: ContextVar[WorkerCheck | None] = ContextVar("_worker_check", default=None)
_failed_groups: ContextVar[FailedGroups | None] = ContextVar("_failed_groups", default=None)

Arguments = Mapping[str, Any]


def fit(_: Callable[..., Any], arguments: Arguments, call: Callable[[], Any]) -> Any:
    """Check the rollout workers during a training, and close their environments at its end."""
    workers: Sequence[Any] = ()
    with warned("a check of verl's rollout workers"):
        workers = arguments["agent_loop_manager"].agent_loop_workers
    tokens = _worker_check.set(WorkerCheck(workers)), _failed_groups.set(FailedGroups())
    try:
        return call()
    finally:
        _worker_check.reset(tokens[0])
        _failed_groups.reset(tokens[1])
        with warned("the number of unfinished episodes"):
            cancelled = close_environments(workers)
            if cancelled:
                log.warning("the run ends: %d unfinished groups of episodes are cancelled", cancelled)


def poll(_: Callable[..., Any], __: Arguments, call: Callable[[], Any]) -> Any:
    """Check the rollout workers while the trainer waits for their episodes."""
    check = _worker_check.get()
    if check is not None:
        check.check()
    return call()


def evict(_: Callable[..., Any], arguments: Arguments, call: Callable[[], Any]) -> Any:
    """Count the groups that the trainer is about to replace because they failed."""
    groups = _failed_groups.get()
    if groups is not None:
        failed: Sequence[str] = ()
        finished: Sequence[str] = ()
        with warned("the number of failed groups"):
            failed = list(arguments["eviction_reasons"][2])
            finished = list(arguments["self"].finished_keys[arguments["partition_id"]])
        groups.add(failed, finished)
    return call()


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


class EpisodesFailed(RuntimeError):
    """Too many groups of episodes failed in a row."""


class FailedGroups:
    """Counts the groups that failed in a row."""

    def __init__(self) -> None:
        self._count = 0
        self._waiting: frozenset[str] = frozenset()

    def add(self, failed: Collection[str], finished: Collection[str]) -> None:
        """Count the groups that a poll of the replay buffer found.

        Args:
            failed: The ids of the groups that failed since the last poll.
            finished: The ids of the groups that wait to be trained with.

        Raises:
            EpisodesFailed: More than `MOST_FAILED` failed, and none finished meanwhile.
        """
        # Groups that finished before the first failure may wait indefinitely: a batch needs more of them.
        waiting = frozenset(finished)
        self._count = 0 if waiting - self._waiting else self._count + len(failed)
        self._waiting = waiting
        if self._count > MOST_FAILED:
            raise EpisodesFailed(
                f"{self._count} groups of episodes in a row ended with an error, and none finished, so verl "
                "would keep replacing them indefinitely: correct the error that the log shows after "
                "'Error in _run_prompt'; agentgym verl check finds most of them"
            )


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


@contextlib.contextmanager
def warned(name: str) -> Iterator[None]:
    """Log an error as a warning.

    Args:
        name: The name of the result that is then missing.
    """
    try:
        yield
    except Exception:
        log.warning("%s could not be computed", name, exc_info=True)
