"""Labels of episodes for logs, dumps and errors, without passwords."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from agentgym_gym.rollout import split_id
from verl_bridge._run.timing import LABEL, Timing

if TYPE_CHECKING:
    from verl_bridge.tasks import EnvTask

__all__ = ["labels_of", "name_of", "server_of", "without_passwords"]

_MOST_CHARS = 500


def labels_of(task: EnvTask, fault: Mapping[str, str] | None, timing: Timing | None = None) -> dict[str, str]:
    """Return the task, the fault and the timing of an episode as labels, always under the same keys.

    Args:
        task: The task of the episode.
        fault: Its ``kind`` and ``message``, if it failed.
        timing: Its timing; None if it was not played.

    Returns:
        ``env_id``, ``env_task``, ``env_server``, ``fault_kind`` and ``fault_message``, of at most 500
        characters each, empty if there is no value; and ``env_timing``, the JSON of `Timing`.
    """
    kind, message = (fault["kind"], fault["message"]) if fault else ("", "")
    return {
        "env_id": split_id(task.env_id)[1],
        "env_task": name_of(task),
        "env_server": server_of(task),
        "fault_kind": kind,
        "fault_message": without_passwords(message)[:_MOST_CHARS],
        LABEL: (timing or Timing()).label(),
    }


def name_of(task: EnvTask) -> str:
    """Return the reset options and the seed of a task as JSON, which identify it in its environment."""
    reset = dict(task.options) if task.seed is None else {**task.options, "seed": task.seed}
    return without_passwords(json.dumps(reset, ensure_ascii=False, default=str))[:_MOST_CHARS]


def server_of(task: EnvTask) -> str:
    """Return the server URLs in a task's arguments, separated by blanks."""
    server = task.env_kwargs.get("server")
    servers = server if isinstance(server, list | tuple) else [server] if isinstance(server, str) else []
    return without_passwords(" ".join(map(str, servers)))[:_MOST_CHARS]


def without_passwords(text: str) -> str:
    """Return the text with user names and passwords removed from its URLs."""
    return re.sub(r"(?<=://)[^\s/]*@", "***@", text)  # up to the last @: a password may contain one
