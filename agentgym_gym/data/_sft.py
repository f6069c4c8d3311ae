"""Rows for supervised fine-tuning: one per trajectory, or one per turn.

verl's SFT dataset reads the column ``messages`` and trains on every assistant message: verl 0.7 to 0.9 has no
flag to exclude one. ``verl_bridge.sft_dataset`` reads the column ``loss`` too. The other columns store the
rest of the trajectory, so that it can be read back.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agentgym_gym.data._parquet import require_pyarrow
from agentgym_gym.data._trajectories import Message, Trajectory
from agentgym_gym.data._turns import per_turn
from agentgym_gym.errors import BadFile, BadOption

if TYPE_CHECKING:
    from agentgym_gym.evaluate import History

__all__ = ["read_sft", "sft_rows", "sft_schema"]


def sft_rows(
    trajectories: Iterable[Trajectory], *, history: History | str = "all"
) -> Iterator[dict[str, Any]]:
    """Yield a row for each trajectory, or for each of its turns.

    ``messages`` ends with the last reply. Later messages of the environment are in ``rest``: no reply follows
    them, so there is nothing to train on.

    Args:
        trajectories: The trajectories.
        history: The part of the conversation before each reply: a `History`, or its text. With ``"all"``, a
            row is a whole trajectory; otherwise it is a turn: the messages that the model gets at it, and
            its reply.

    Raises:
        BadOption: A fault ended a trajectory, or it lacks what the policy requires.
    """
    for each in (turn for trajectory in trajectories for turn in per_turn(trajectory, history)):
        if each.fault is not None:
            raise BadOption(f"{each.source or each.key}: ended by {each.fault}, so it is not training data")
        end = max(
            (at for at, message in enumerate(each.messages, 1) if message.role == "assistant"), default=0
        )
        rest = {
            "extra": dict(each.extra),
            "item_id": each.item_id,
            "of_messages": {
                str(at): dict(message.extra) for at, message in enumerate(each.messages) if message.extra
            },
            "after": [[message.role, message.content, message.loss] for message in each.messages[end:]],
        }
        yield {
            "messages": [
                {"role": message.role, "content": message.content} for message in each.messages[:end]
            ],
            "data_source": each.env_id,
            "task_id": each.task_id,
            "score": each.score,
            "success": each.success,
            "action_format": each.action_format,
            "loss": [message.loss for message in each.messages[:end]],
            "rest": json.dumps(rest),
        }


def sft_schema() -> Any:
    """Return the columns of :func:`sft_rows` as a ``pyarrow.Schema``.

    Raises:
        MissingExtra: pyarrow is not installed.
    """
    pa = require_pyarrow()
    text = pa.string()
    return pa.schema(
        [
            ("messages", pa.list_(pa.struct([("role", text), ("content", text)]))),
            ("data_source", text),
            ("task_id", pa.int64()),
            ("score", pa.float64()),
            ("success", pa.bool_()),
            ("action_format", text),
            ("loss", pa.list_(pa.bool_())),
            ("rest", text),
        ]
    )


def read_sft(path: Path) -> list[Trajectory]:
    """Return the trajectories of a file of :func:`sft_rows`, or of all ``.parquet`` files of a folder.

    Args:
        path: A file or folder. Subfolders are not searched.

    Raises:
        BadOption: A file cannot be read, or does not contain such rows. The message names the file and row.
        MissingExtra: pyarrow is not installed.
    """
    files = sorted(path.glob("*.parquet")) if path.is_dir() else [path]
    if not files:
        raise BadFile(f"there is no .parquet file in the folder {path}", path=path)
    return [trajectory for file in files for trajectory in _read(file)]


def _read(file: Path) -> Iterator[Trajectory]:
    pyarrow = require_pyarrow()
    try:
        with pyarrow.parquet.ParquetFile(file) as opened:
            columns, expected = opened.schema_arrow, sft_schema()
            for column in expected:
                if column.name not in columns.names or columns.field(column.name).type != column.type:
                    raise BadFile(
                        f"{file} was not written by `agentgym data sft`: it has no column {column.name!r} "
                        f"of the type {column.type}",
                        path=file,
                    )
            at = 0
            for batch in opened.iter_batches(columns=expected.names):
                for row in batch.to_pylist():
                    yield _trajectory(row, f"{file}: row {at}")
                    at += 1
    except (OSError, pyarrow.ArrowException) as error:
        raise BadFile(f"cannot read {file}: {error}", path=file) from error


def _trajectory(row: Mapping[str, Any], where: str) -> Trajectory:
    try:
        rest = json.loads(row["rest"])
        values = [
            (each["role"], each["content"], loss)
            for each, loss in zip(row["messages"], row["loss"], strict=True)
        ] + rest["after"]
        extra = rest["of_messages"]
        messages = [
            Message(role, content, loss, extra.get(str(at), {}))
            for at, (role, content, loss) in enumerate(values)
        ]
        if not all(isinstance(each.content, str) for each in messages):
            raise TypeError("a message without text")
        return Trajectory(
            str(row["data_source"]),
            int(row["task_id"]),
            tuple(messages),
            score=row["score"],
            success=row["success"],
            action_format=row["action_format"],
            item_id=rest["item_id"],
            extra=rest["extra"],
            source=where,
        )
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise BadOption(f"{where} is not a trajectory: {error}") from error
