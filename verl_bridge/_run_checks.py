"""The checks of a run of verl 0.9's trainer: :mod:`verl_bridge.trainer` wraps verl's functions with these."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from typing import Any

from verl_bridge._failed_groups import FailedGroups
from verl_bridge._run_end import close_environments
from verl_bridge._warned import log, warned
from verl_bridge._worker_check import WorkerCheck

__all__ = ["evict", "fit", "poll"]

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
