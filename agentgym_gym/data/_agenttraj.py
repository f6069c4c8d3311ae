"""AgentGym's trajectory files: the AgentTraj dataset, and rollouts saved by AgentGym's trainer.

An entry is ``{"conversations": [{"from": "human", "loss": null, "value": "..."}], "item_id": "maze_3"}``,
where ``from`` is ``human``, ``gpt`` or ``system``. The trainer adds ``reward``, and ``success`` as 0 or 1.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from agentgym_gym._files import replaces
from agentgym_gym._text import shown
from agentgym_gym.catalogue import find
from agentgym_gym.data._trajectories import Message, Role, Trajectory, as_turns
from agentgym_gym.errors import ArgumentName, BadFile, BadOption, UnknownEnvironment
from agentgym_gym.evaluate._items import entries, is_unicode, item_id_of, item_of

__all__ = ["agenttraj_entry", "read_agenttraj", "write_agenttraj"]

_ROLES: dict[str, Role] = {"human": "user", "gpt": "assistant", "system": "system"}
_SPEAKERS = {role: speaker for speaker, role in _ROLES.items()}
_MAX_SCORE = sys.float_info.max  # a JSON integer may exceed the float range
_MESSAGE_KEYS = frozenset({"from", "value", "loss"})
_ENTRY_KEYS = frozenset({"conversations", "item_id", "reward", "success", "action_format"})


def read_agenttraj(path: Path) -> list[Trajectory]:
    """Return the trajectories of an AgentTraj file, or of all ``.json`` files in a folder, in order.

    Messages are copied unchanged; the prompt is the first user message. ``reward`` becomes the score. Unknown
    keys are kept in ``extra``.

    Args:
        path: A ``.json`` file, a ``.jsonl`` file with one entry per line, or a folder. Subfolders are not
            searched.

    Raises:
        BadOption: A file cannot be read, or an entry is not a trajectory. The message names the file and the
            index of the entry, from 0.
    """
    return [_trajectory(record, file, at) for file, at, record in entries(path)]


def agenttraj_entry(trajectory: Trajectory) -> dict[str, Any]:
    """Return a trajectory as an AgentTraj entry.

    `as_turns` converts a system message to AgentGym's first two messages. The score is written as ``reward``.
    The keys ``reward``, ``success`` and ``action_format`` are omitted if their values are unknown.

    Raises:
        BadOption: A fault ended the trajectory, or AgentGym has no item ids for its environment.
    """
    if trajectory.fault is not None:
        raise BadOption(
            f"{trajectory.source or trajectory.key}: ended by {trajectory.fault}, so it is not training data"
        )
    known = {
        "reward": trajectory.score,
        "success": trajectory.success,
        "action_format": trajectory.action_format,
    }
    entry = {
        "conversations": [
            _merged({"from": _SPEAKERS[each.role], "loss": each.loss, "value": each.content}, each.extra)
            for each in as_turns(trajectory).messages
        ],
        "item_id": trajectory.item_id or _item_id(trajectory),
        **{name: value for name, value in known.items() if value is not None},
    }
    return _merged(entry, trajectory.extra)


def write_agenttraj(path: Path, trajectories: Iterable[Trajectory], *, force: bool = False) -> int:
    """Write an AgentTraj file atomically.

    Args:
        path: The file. Its folder is created if it does not exist.
        trajectories: The trajectories to write, in this order.
        force: Whether to replace an existing file.

    Returns:
        The number of trajectories written.

    Raises:
        BadOption: There are no trajectories, a trajectory has no AgentTraj form, the file exists and
            ``force`` is false, or writing fails.
    """
    if path.exists() and not force:
        raise BadFile(f"{path} exists; choose another file, or set ", ArgumentName("force"), path=path)
    lines = [json.dumps(agenttraj_entry(each), ensure_ascii=False) for each in trajectories]
    if not lines:
        raise BadFile(f"there are no trajectories to write to {path}", path=path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with replaces(path) as part:
            part.write_text("[\n" + ",\n".join(lines) + "\n]\n", "utf-8")
    except OSError as error:
        raise BadFile(f"cannot write to {path}: {error.strerror or error}", path=path) from error
    return len(lines)


def _merged(own: dict[str, Any], extra: Mapping[str, Any]) -> dict[str, Any]:
    """Return our keys, followed by the source's extra keys that do not clash with them."""
    return own | {key: value for key, value in extra.items() if key not in own}


def _item_id(trajectory: Trajectory) -> str:
    try:
        return item_id_of(find(trajectory.env_id), trajectory.task_id)
    except UnknownEnvironment:
        raise BadOption(
            f"{trajectory.source or trajectory.key}: {trajectory.env_id} is not in the catalogue, which "
            "has the item ids of AgentTraj files"
        ) from None


def _trajectory(record: Any, file: Path, at: int) -> Trajectory:
    item, where = item_of(record, file, at), f"{file}: entry {at}"
    try:
        if not is_unicode(json.dumps(record, ensure_ascii=False)):
            raise BadOption(f"{where} contains a lone surrogate, which UTF-8 cannot encode; remove it")
    except RecursionError:
        raise BadOption(f"{where} is nested too deeply to be written; flatten it") from None
    conversations = record.get("conversations")
    if not isinstance(conversations, list) or not conversations:
        raise BadOption(
            f"{where} has no conversations; for a file that only lists tasks, use `agentgym data rl`"
        )
    action_format = record.get("action_format")
    if not isinstance(action_format, str | None):
        raise BadOption(f"{where}: action_format should be text, not {json.dumps(action_format):.80}")
    return Trajectory(
        item.environment.id,
        item.task_id,
        tuple(_messages(conversations, where)),
        score=_score(record.get("reward"), where),
        success=_success(record.get("success"), where),
        action_format=action_format,
        item_id=record["item_id"],
        extra={key: value for key, value in record.items() if key not in _ENTRY_KEYS},
        source=where,
    )


def _messages(conversations: list[Any], where: str) -> Iterator[Message]:
    for number, turn in enumerate(conversations):
        speaker, text = (turn.get("from"), turn.get("value")) if isinstance(turn, dict) else (None, None)
        role = _ROLES.get(speaker) if isinstance(speaker, str) else None
        if role is None or not isinstance(text, str):
            raise BadOption(
                f'{where}: message {number} should be {{"from": "human", "loss": null, "value": "..."}}, or '
                f"from gpt or system, not {json.dumps(turn):.80}"
            )
        loss = turn.get("loss")
        if not isinstance(loss, bool | None):
            raise BadOption(
                f"{where}: message {number}: loss should be true, false or null, not {loss!r:.80}"
            )
        extra = {key: value for key, value in turn.items() if key not in _MESSAGE_KEYS}
        yield Message(role, text, loss, extra)


def _score(value: Any, where: str) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= _MAX_SCORE:
        raise BadOption(f"{where}: the reward should be a number, not {shown(value)}")
    return float(value)


def _success(value: Any, where: str) -> bool | None:
    if value is None or value in (True, False):  # 1 and 0 equal True and False
        return None if value is None else bool(value)
    raise BadOption(f"{where}: success should be true, false, 1 or 0, not {value!r:.80}")
