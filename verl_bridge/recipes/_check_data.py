"""Check the data: verl must be able to read the rows, and their tasks must be the ones to train on."""

from __future__ import annotations

import contextlib
import importlib
import json
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from verl_bridge.recipes._finding import Finding, Missing, ok, problem, warning
from verl_bridge.recipes._verl_settings import NotReadable, lookup
from verl_bridge.tasks import EnvTask

if TYPE_CHECKING:
    from verl_bridge.recipes._verl_settings import RlSettings, SftSettings

__all__ = [
    "FindTask",
    "KnownTask",
    "RowTask",
    "Rows",
    "TaskFacts",
    "check_catalogue",
    "check_rows",
    "check_shares",
    "check_split_leakage",
    "find_known_tasks",
    "read_games",
    "read_rows",
    "read_tasks",
    "row_errors",
]

_COLUMNS = ("prompt", "agent_name", "data_source", "reward_model", "extra_info")


@dataclass(frozen=True)
class Rows:
    """The rows of the data.

    Attributes:
        folder: The training folder.
        parts: The rows of ``"train"`` and ``"val"``, if all files of the part could be read.
        errors: The error of each other part; a part without files is in neither.
        files: The files of each part, each with its number of rows.
    """

    folder: Path
    parts: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    errors: dict[str, str] = field(default_factory=dict)
    files: dict[str, list[tuple[Path, int]]] = field(default_factory=dict)

    def first_errors(self, error_of: Callable[[Mapping[str, Any]], str | None]) -> dict[str, str]:
        """Return the error of the first invalid row of each part, with its place; empty without one.

        Args:
            error_of: Returns the error of a row, or None.
        """
        return {
            part: next(
                (
                    f"{self.location(part, at)}: {error}"
                    for at, row in enumerate(of_part)
                    if (error := error_of(row))
                ),
                "",
            )
            for part, of_part in self.parts.items()
        }

    def location(self, part: str, index: int) -> str:
        """Return where a row is: its file, and its index there."""
        left = index
        for file, count in self.files[part]:
            if left < count:
                inside = file.relative_to(self.folder) if file.is_relative_to(self.folder) else file
                return f"{inside}, row {left}"
            left -= count
        return f"{part}, row {index}"


def read_rows(folder: Path, settings: RlSettings | SftSettings) -> Rows | Missing:
    """Read the data files."""
    try:
        parquet = importlib.import_module("pyarrow.parquet")
    except ModuleNotFoundError:
        return Missing("pyarrow is not installed here", "pip install 'pyarrow>=14'")
    rows = Rows(folder)
    for part, files in (("train", settings.train_files), ("val", settings.val_files)):
        if not files:
            continue
        try:
            tables = [(file, _read_table(file, parquet)) for file in files]
        except NotReadable as error:
            rows.errors[part] = str(error)
        else:
            rows.files[part] = [(file, len(table)) for file, table in tables]
            rows.parts[part] = [row for _, table in tables for row in table]
    return rows


def _read_table(file: Path, parquet: Any) -> list[dict[str, Any]]:
    if not file.exists():
        raise NotReadable(f"cannot read {file}: there is no such file")
    try:
        table: list[dict[str, Any]] = parquet.read_table(file).to_pylist()
    except (OSError, ValueError) as error:  # pyarrow's errors are subclasses of these
        raise NotReadable(f"cannot read {file}: {' '.join(str(error).split())[:300]}") from None
    return table


def check_rows(
    rows: Rows, row_errors: Mapping[str, str], settings: RlSettings | SftSettings, sft: bool
) -> Iterator[Finding]:
    """Check whether verl and the bridge can read the rows, and whether they are enough for a batch."""
    write = "write it with agentgym data sft" if sft else "write it; see README.md"
    again = "write it with agentgym data sft" if sft else "write it again; see docs/training/recipes.md"
    for part in ("train", "val"):
        if part in rows.errors:
            yield problem("data", rows.errors[part], write)
        elif part in rows.parts:
            number = _check_number(part, len(rows.parts[part]), settings.batch, sft=sft)
            if not row_errors[part] or number.status != "ok":
                yield number
            if row_errors[part]:
                yield problem("data", row_errors[part], again)
        elif part == "train" or not sft:
            yield problem("data", f"no data.{part}_files are set", f"set data.{part}_files to a parquet file")


def _check_number(part: str, count: int, batch: int, *, sft: bool) -> Finding:
    """Check whether a part has enough rows for a batch; only fine-tuning validates by whole batches."""
    kind = "games" if sft else "rows"
    batch = batch if sft or part == "train" else 1
    if count < batch and sft and part == "val":
        return warning(
            "data",
            f"val has {count} games, too few for a batch of {batch}: its loss will be nan",
            "write more games, or none for validation",
        )
    if count < batch:
        return problem(
            "data",
            f"{part} has {count} {kind}, and verl drops incomplete batches of {batch}: nothing is left",
            f"write more {kind}, or set a smaller data.train_batch_size",
        )
    batches = f"games, {count // batch} batches of {batch}" if sft else "rows with all required columns"
    return ok("data", f"{part} has {count} {batches}")


def row_errors(rows: Rows) -> dict[str, str]:
    """Return the error of the first invalid row of each part, with its place; empty without one."""
    return rows.first_errors(_row_error)


def _row_error(row: Mapping[str, Any]) -> str | None:
    missing = [column for column in _COLUMNS if row.get(column) is None]
    if missing:
        return f"there is no {missing[0]}"
    prompt, extra, scored = row["prompt"], row["extra_info"], row["reward_model"]
    messages = prompt if isinstance(prompt, list) else []
    texts = all(isinstance(m, Mapping) and _is_text(m.get("role"), m.get("content")) for m in messages)
    rules = {
        f"prompt should be a list of messages with role and content as text, not {prompt!r:.80}": (
            bool(messages) and texts
        ),
        f"agent_name should be text, not {row['agent_name']!r:.80}": _is_text(row["agent_name"]),
        "reward_model should hold a ground_truth, if only an empty one": (
            isinstance(scored, Mapping) and scored.get("ground_truth") is not None
        ),
        "extra_info should hold interaction_kwargs": (
            isinstance(extra, Mapping) and isinstance(extra.get("interaction_kwargs"), Mapping)
        ),
    }
    return next((wrong for wrong, fits in rules.items() if not fits), None)


def _is_text(*values: Any) -> bool:
    return all(isinstance(value, str) for value in values)


class RowTask(NamedTuple):
    """The task of a row.

    Attributes:
        place: Where the row is.
        row: The row.
        env_id: gymnasium's id; empty if the row is invalid.
        number: The number of the task in the catalogue of its environment, or None.
        key: The environment with its seed and options as text; empty if the environment chooses the task.
        paper: The paper whose item file selected the task; empty without one.
        task: The task as the loop plays it; None for fine-tuning, or with an error.
        error: Why the loop cannot play it: an invalid row, or an invalid default.
    """

    place: str
    row: Mapping[str, Any]
    env_id: str
    number: Any
    key: str
    paper: str = ""
    task: EnvTask | None = None
    error: str = ""


def read_tasks(rows: Rows, arguments: Mapping[str, Any]) -> dict[str, list[RowTask]]:
    """Return the tasks of each part that could be read.

    Args:
        rows: The rows.
        arguments: The arguments of the loop.
    """
    names = ("env_id", "env_kwargs", "reset_options", "isolate", "success_at")
    defaults = {name: arguments.get(name) for name in names}
    return {
        part: [_read_task(rows.location(part, index), row, defaults) for index, row in enumerate(of_part)]
        for part, of_part in rows.parts.items()
    }


def _read_task(place: str, row: Mapping[str, Any], defaults: Mapping[str, Any]) -> RowTask:
    env_id, number, key, paper = "", None, "", str(lookup(row, "extra_info.tasks_of") or "")
    with contextlib.suppress(ValueError, AttributeError):
        own = EnvTask.of(row, env_id=defaults["env_id"])
        env_id, number = own.env_id, own.options.get("task_id")
        if own.seed is not None or own.options:
            key = json.dumps([own.env_id, own.options, own.seed], sort_keys=True, default=str)
    try:
        return RowTask(place, row, env_id, number, key, paper, EnvTask.of(row, **defaults))
    except (ValueError, AttributeError) as error:
        return RowTask(place, row, env_id, number, key, paper, error=str(error))


def read_games(rows: Rows) -> dict[str, list[RowTask]]:
    """Return the tasks of the rows for fine-tuning that have a number."""
    return {
        part: [
            RowTask(
                rows.location(part, index),
                row,
                str(row.get("data_source")),
                row["task_id"],
                str((row.get("data_source"), row["task_id"])),
            )
            for index, row in enumerate(of_part)
            if row.get("task_id") is not None
        ]
        for part, of_part in rows.parts.items()
    }


def check_split_leakage(tasks: Mapping[str, Collection[RowTask]], sft: bool) -> Iterator[Finding]:
    """Check whether tasks of the validation split are also trained on."""
    if not {"train", "val"} <= set(tasks):
        return
    train, val = ({task.key for task in tasks[part]} - {""} for part in ("train", "val"))
    drawn = sum(bool(task.env_id) and not task.key for part in tasks.values() for task in part)
    again = "split the tasks again: success on trained tasks does not measure generalization"
    if train & val:
        yield problem(
            "validation",
            f"{len(train & val)} of the tasks in val are in train too, such as {min(train & val):.200}",
            "write them again with agentgym data sft, which splits by task" if sft else again,
        )
    elif drawn:
        yield warning(
            "validation",
            f"{drawn} rows have neither seed nor reset_options: the environment chooses their tasks",
            "give each row a seed, or the options of its reset",
        )
    else:
        yield ok("validation", "no task is in both train and val")


def check_shares(tasks: Mapping[str, Collection[RowTask]]) -> Iterator[Finding]:
    """Report the rows of each environment, if there are several."""
    of = {part: _by_environment(of_part) for part, of_part in tasks.items()}
    trained = of.get("train", {})
    if len(trained) < 2:  # noqa: PLR2004 - one has all of them
        return
    for part, keys_of in of.items():
        total = sum(map(len, keys_of.values()))
        shares = [
            f"{env_id} {len(keys) / total:.1%} ({_times(keys)})" for env_id, keys in sorted(keys_of.items())
        ]
        yield ok("shares", f"{part}: {', '.join(shares)}")
    missing = sorted(set(trained) - set(of["val"])) if "val" in of else []
    if missing:
        yield warning(
            "shares",
            f"val has no task of {', '.join(missing)}: learning there is not measured",
            "write tasks of each environment into val",
        )


def _by_environment(tasks: Collection[RowTask]) -> dict[str, list[str]]:
    """Return the keys of tasks by the id of their environment; invalid rows are reported elsewhere."""
    found: dict[str, list[str]] = defaultdict(list)
    for task in tasks:
        if task.env_id:
            found[task.env_id].append(task.key)
    return found


def _times(keys: list[str]) -> str:
    """Return the number of rows and of different tasks as text."""
    counts = Counter(filter(None, keys))
    again = f" of {len(counts)} tasks" if counts and len(counts) < len(keys) else ""
    return f"{len(keys)} row{'s' if len(keys) > 1 else ''}{again}"


@dataclass(frozen=True)
class TaskFacts:
    """The catalogue's facts about a task.

    Attributes:
        error: Why the environment has no such task; empty if it has it.
        held_out: The split for evaluation that contains the task, such as ``test``; empty without one.
        unwinnable: Why the task cannot be won; empty if it can.
    """

    error: str = ""
    held_out: str = ""
    unwinnable: str = ""


FindTask: TypeAlias = Callable[[str, Any], "TaskFacts | None"]
"""Returns the facts about a task by the id of its environment and its number; None without a catalogue."""


class KnownTask(NamedTuple):
    """A task that is in a catalogue, and the catalogue's facts about it."""

    task: RowTask
    facts: TaskFacts


def find_known_tasks(
    tasks: Mapping[str, Collection[RowTask]], find_task: FindTask
) -> dict[str, list[KnownTask]]:
    """Return the numbered tasks of each part that a catalogue has facts about."""
    return {
        part: [
            KnownTask(task, facts)
            for task in of_part
            if task.number is not None and (facts := find_task(task.env_id, task.number))
        ]
        for part, of_part in tasks.items()
    }


def check_catalogue(known_tasks: Mapping[str, Collection[KnownTask]], sft: bool) -> Iterator[Finding]:
    """Check whether the tasks exist, are for training, and can be won."""
    again = (
        f"write the {'folder' if sft else 'rows'} again with agentgym verl {'sft' if sft else 'init'} --force"
    )
    for part, tasks in known_tasks.items():
        missing = [task for task in tasks if task.facts.error]
        if missing:
            more = f" ({len(missing)} such rows in {part})" if len(missing) > 1 else ""
            yield problem("tasks", f"{missing[0].task.place}: {missing[0].facts.error}{more}", again)
    train = known_tasks.get("train", ())
    held_out = [task for task in train if task.facts.held_out]
    own = [known for known in held_out if not known.task.paper]
    of_paper = [known for known in held_out if known.task.paper]
    if own:
        yield problem(
            "tasks",
            f"{len(own)} of {len(train)} rows of train are for evaluation: {_by_split(own)}",
            f"{again}, whose default is the split train",
        )
    if of_paper:
        yield warning(
            "tasks",
            f"{len(of_paper)} of {len(train)} rows of train, from an item file of {of_paper[0].task.paper}, "
            f"are for evaluation here: {_by_split(of_paper)}",
            "evaluate on tasks that the paper kept out, and not on these splits",
        )
    for part, tasks in known_tasks.items():
        lost = [task for task in tasks if task.facts.unwinnable]
        if lost:
            yield warning(
                "tasks",
                f"{len(lost)} of {len(tasks)} rows of {part} cannot be won; {lost[0].task.place}: "
                f"{lost[0].facts.unwinnable}",
                f"{again}, without --split all",
            )
    if train and not held_out and not any(task.facts.error for task in train):
        yield ok("tasks", "no row of train is in a split for evaluation")


def _by_split(tasks: Collection[KnownTask]) -> str:
    counts = Counter((known.task.env_id, known.facts.held_out) for known in tasks)
    return ", ".join(f"{count} in {split} of {env_id}" for (env_id, split), count in counts.most_common())
