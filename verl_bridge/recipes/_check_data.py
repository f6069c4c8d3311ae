"""Check a recipe's data: verl must be able to read the rows, and their tasks must be those to train on."""

from __future__ import annotations

import contextlib
import json
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from verl_bridge.recipes._check_files import lookup
from verl_bridge.recipes._finding import Finding, ok, problem, warning
from verl_bridge.tasks import EnvTask

if TYPE_CHECKING:
    from verl_bridge.recipes._check_files import Rows, Settings

__all__ = [
    "FindTask",
    "KnownTask",
    "RowTask",
    "TaskFacts",
    "check_catalogue",
    "check_rows",
    "check_shares",
    "check_split_leakage",
    "known_games",
    "known_tasks",
    "read_tasks",
]

_COLUMNS = ("prompt", "agent_name", "data_source", "reward_model", "extra_info")


def check_rows(rows: Rows, settings: Settings) -> Iterator[Finding]:
    """Check whether verl and the bridge can read the rows."""
    minimum = {"train": settings.number("data.train_batch_size", 1024), "val": 1}
    for part, needed in minimum.items():
        if part in rows.errors:
            yield problem("data", rows.errors[part], "write it; see README.md")
        elif part in rows.parts:
            yield from _check_part(rows, part, needed)
        else:
            yield problem("data", f"no data.{part}_files are set", f"set data.{part}_files to a parquet file")


def _check_part(rows: Rows, part: str, needed: int) -> Iterator[Finding]:
    count = len(rows.parts[part])
    if count < needed:
        yield problem(
            "data",
            f"{part} has {count} rows, and verl drops incomplete batches of {needed}: nothing is left",
            "write more rows, or set a smaller data.train_batch_size",
        )
    for index, row in enumerate(rows.parts[part]):
        wrong = _row_error(row)
        if wrong:
            yield problem(
                "data",
                f"{rows.location(part, index)}: {wrong}",
                "write it again; see docs/training/recipes.md",
            )
            return
    if count >= needed:
        yield ok("data", f"{part} has {count} rows with all required columns")


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
        own: The task without the defaults of the loop; None if the row is invalid.
        task: The task as the loop plays it, or the error of an invalid row or default.
    """

    place: str
    row: Mapping[str, Any]
    own: EnvTask | None
    task: EnvTask | str

    @property
    def key(self) -> str | None:
        """The environment with its seed and options as text; None if the environment chooses the task."""
        if self.own is None or (self.own.seed is None and not self.own.options):
            return None
        return json.dumps([self.own.env_id, self.own.options, self.own.seed], sort_keys=True, default=str)


def read_tasks(rows: Rows, arguments: Mapping[str, Any]) -> dict[str, list[RowTask]]:
    """Return the tasks of each part that could be read.

    Args:
        rows: The rows.
        arguments: The arguments of the loop.
    """
    names = ("env_id", "env_kwargs", "reset_options", "isolate", "success_at")
    defaults = {name: arguments.get(name) for name in names}
    tasks = {}
    for part, of_part in rows.parts.items():
        tasks[part] = [
            RowTask(rows.location(part, index), row, *_read_task(row, defaults))
            for index, row in enumerate(of_part)
        ]
    return tasks


def _read_task(row: Mapping[str, Any], defaults: Mapping[str, Any]) -> tuple[EnvTask | None, EnvTask | str]:
    own = None
    with contextlib.suppress(ValueError, AttributeError):
        own = EnvTask.of(row, env_id=defaults["env_id"])
    try:
        return own, EnvTask.of(row, **defaults)
    except (ValueError, AttributeError) as error:
        return own, str(error)


def check_split_leakage(tasks: Mapping[str, Collection[RowTask]]) -> Iterator[Finding]:
    """Check whether tasks of the validation split are also trained on."""
    if not {"train", "val"} <= set(tasks):
        return
    train, val = ({task.key for task in tasks[part]} - {None} for part in ("train", "val"))
    drawn = sum(task.own is not None and task.key is None for part in tasks.values() for task in part)
    both = train & val
    if both:
        yield problem(
            "validation",
            f"{len(both)} of the tasks in val are in train too, such as {min(map(str, both)):.200}",
            "split the tasks again: success on trained tasks does not measure generalization",
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


def _by_environment(tasks: Collection[RowTask]) -> dict[str, list[str | None]]:
    """Return the keys of tasks by the id of their environment; invalid rows are reported elsewhere."""
    found: dict[str, list[str | None]] = defaultdict(list)
    for task in tasks:
        if task.own is not None:
            found[task.own.env_id].append(task.key)
    return found


def _times(keys: list[str | None]) -> str:
    """Return the number of rows and of different tasks as text."""
    counts = Counter(key for key in keys if key is not None)
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
    """A task that is in a catalogue.

    Attributes:
        env_id: gymnasium's id.
        place: Where the row is.
        facts: The catalogue's facts about the task.
        tasks_of: The paper whose item file selected the task; empty without one.
    """

    env_id: str
    place: str
    facts: TaskFacts
    tasks_of: str = ""


def known_tasks(tasks: Mapping[str, Collection[RowTask]], find_task: FindTask) -> dict[str, list[KnownTask]]:
    """Return the numbered tasks of each part that a catalogue has facts about."""
    known: dict[str, list[KnownTask]] = {part: [] for part in tasks}
    for part, of_part in tasks.items():
        for place, row, own, _ in of_part:
            number = None if own is None else own.options.get("task_id")
            if own is not None and number is not None and (facts := find_task(own.env_id, number)):
                tasks_of = str(lookup(row, "extra_info.tasks_of") or "")
                known[part].append(KnownTask(own.env_id, place, facts, tasks_of))
    return known


def known_games(rows: Rows, find_task: FindTask) -> dict[str, list[KnownTask]]:
    """Return the rows for fine-tuning of each part whose tasks a catalogue has facts about."""
    known: dict[str, list[KnownTask]] = {part: [] for part in rows.parts}
    for part, of_part in rows.parts.items():
        for at, row in enumerate(of_part):
            env_id, number = str(row.get("data_source")), row.get("task_id")
            if number is not None and (facts := find_task(env_id, number)):
                known[part].append(KnownTask(env_id, rows.location(part, at), facts))
    return known


def check_catalogue(known_tasks: Mapping[str, Collection[KnownTask]], sft: bool) -> Iterator[Finding]:
    """Check whether the tasks exist, are for training, and can be won."""
    again = (
        f"write the {'folder' if sft else 'rows'} again with agentgym verl {'sft' if sft else 'init'} --force"
    )
    for part, tasks in known_tasks.items():
        missing = [task for task in tasks if task.facts.error]
        if missing:
            more = f" ({len(missing)} such rows in {part})" if len(missing) > 1 else ""
            yield problem("tasks", f"{missing[0].place}: {missing[0].facts.error}{more}", again)
    train = known_tasks.get("train", ())
    held_out = [task for task in train if task.facts.held_out]
    own = [task for task in held_out if not task.tasks_of]
    of_paper = [task for task in held_out if task.tasks_of]
    if own:
        yield problem(
            "tasks",
            f"{len(own)} of {len(train)} rows of train are for evaluation: {_by_split(own)}",
            f"{again}, whose default is the split train",
        )
    if of_paper:
        yield warning(
            "tasks",
            f"{len(of_paper)} of {len(train)} rows of train, from an item file of {of_paper[0].tasks_of}, "
            f"are for evaluation here: {_by_split(of_paper)}",
            "evaluate on tasks that the paper kept out, and not on these splits",
        )
    for part, tasks in known_tasks.items():
        lost = [task for task in tasks if task.facts.unwinnable]
        if lost:
            yield warning(
                "tasks",
                f"{len(lost)} of {len(tasks)} rows of {part} cannot be won; {lost[0].place}: "
                f"{lost[0].facts.unwinnable}",
                f"{again}, without --split all",
            )
    if train and not held_out and not any(task.facts.error for task in train):
        yield ok("tasks", "no row of train is in a split for evaluation")


def _by_split(tasks: Collection[KnownTask]) -> str:
    counts = Counter((task.env_id, task.facts.held_out) for task in tasks)
    return ", ".join(f"{count} in {split} of {env_id}" for (env_id, split), count in counts.most_common())
