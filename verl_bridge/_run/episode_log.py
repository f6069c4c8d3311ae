"""Write the episodes of a training run as lines of ``episodes.jsonl``; independent of verl."""

from __future__ import annotations

import functools
import logging
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timezone
from numbers import Integral
from typing import TYPE_CHECKING, Any

from agentgym_gym.rollout import drop_blank_system
from verl_bridge._run.labels import without_passwords

if TYPE_CHECKING:
    from agentgym_gym.rollout import Episode, EpisodeRecord
    from verl_bridge.horizon import Moment
    from verl_bridge.tasks import EnvTask

__all__ = ["opening_of", "record_of", "session", "task_id_of"]

_HEAD = "node:__internal_head__"  # Ray's name for the resource of a cluster's first machine

_log = logging.getLogger(__name__)


def record_of(
    episode: Episode,
    *,
    agent: str,
    task_id: int,
    fault: Mapping[str, str] | None,
    cut: bool,
    agent_seconds: float,
    moment: Moment | None,
) -> EpisodeRecord:
    """Return the record of a finished episode.

    Args:
        episode: The episode.
        agent: The model's name.
        task_id: The number of its task.
        fault: Why the episode is excluded, or None.
        cut: Whether the response length or the context was used up.
        agent_seconds: Seconds spent waiting for the model.
        moment: The training step of the episode, if verl passes it on.
    """
    record = episode.record(
        agent=agent,
        task_id=task_id,
        ending="context_overflow" if cut else "aborted",
        agent_seconds=agent_seconds,
    )
    if fault is not None:
        shown = {key: without_passwords(value) for key, value in fault.items()}
        record = replace(record, fault=shown, score=None, success=None, truncated=True, ending="fault")
    return replace(
        record,
        step=None if moment is None else moment.step,
        validation=None if moment is None else moment.validation,
        session=session(),
        ended=datetime.now(timezone.utc).isoformat(timespec="milliseconds"),
    )


def task_id_of(task: EnvTask, row: Mapping[str, Any]) -> int:
    """Return the task number: from the reset options, else the seed, else the row index."""
    extra = row.get("extra_info")
    index = extra.get("index") if isinstance(extra, Mapping) else None
    numbers = (task.options.get("task_id"), task.seed, index, row.get("index"))
    return next((int(number) for number in numbers if isinstance(number, Integral)), 0)


def opening_of(messages: Sequence[Mapping[str, Any]]) -> str | None:
    """Return the messages before the first observation as text, or None if there is no such text."""
    messages = drop_blank_system(messages)
    if len(messages) == 1 and messages[0].get("role") == "system":
        return str(messages[0].get("content"))
    lines = [f"{message.get('role')}: {message.get('content')}" for message in messages]
    return "\n\n".join(lines) or None


@functools.cache
def session() -> str | None:
    """Return an id for this start of the training run, or None without a Ray cluster.

    A resumed run repeats the steps since its last checkpoint; this id keeps the two apart. All processes of
    one start belong to one job of one Ray cluster.
    """
    ray = sys.modules.get("ray")
    try:
        if ray is None or not ray.is_initialized():
            return None
        heads = [node["NodeID"] for node in ray.nodes() if _HEAD in node.get("Resources", {})]
        return f"{heads[0][:16]}-{ray.get_runtime_context().get_job_id()}" if heads else None
    except Exception:  # noqa: BLE001 - losing the session id is better than losing the episode
        _log.warning("Ray does not return the id of this job", exc_info=True)
        return None
