"""Check the numbered tasks of the rows by the catalogue of their environments, which the caller hands in."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from verl_bridge.recipes._finding import Finding, ok, problem, warning
from verl_bridge.tasks import EnvTask

if TYPE_CHECKING:
    from verl_bridge.recipes._view import View

__all__ = ["FindTask", "TaskFacts", "check_rl_tasks", "check_sft_tasks"]


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


@dataclass(frozen=True)
class _Row:
    """The task of a row.

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


def check_rl_tasks(view: View, find_task: FindTask | None) -> Iterator[Finding]:
    """Check whether the tasks for reinforcement learning exist, are for training, and can be won.

    Args:
        view: The folder, with its rows.
        find_task: Returns the facts about a task; without it, nothing is checked.
    """
    if find_task is None:
        return
    env_id = view.arguments().get("env_id")
    rows: dict[str, list[_Row]] = {}
    for part, of_part in view.rows.items():
        rows[part] = []
        for at, row in enumerate(of_part):
            with contextlib.suppress(ValueError, AttributeError):  # reported by the check of the rows
                task = EnvTask.of(row, env_id=env_id)
                number = task.options.get("task_id")
                facts = None if number is None else find_task(task.env_id, number)
                if facts is not None:
                    tasks_of = str(row["extra_info"].get("tasks_of") or "")
                    rows[part].append(_Row(task.env_id, view.location(part, at), facts, tasks_of))
    yield from _check_rows(rows, "write the rows again with agentgym verl init --force")


def check_sft_tasks(view: View, find_task: FindTask | None) -> Iterator[Finding]:
    """Check whether the tasks for fine-tuning exist, are for training, and can be won."""
    if find_task is None:
        return
    rows: dict[str, list[_Row]] = {}
    for part, of_part in view.rows.items():
        rows[part] = []
        for at, row in enumerate(of_part):
            env_id, number = row.get("data_source"), row.get("task_id")
            facts = None if number is None else find_task(str(env_id), number)
            if facts is not None:
                rows[part].append(_Row(str(env_id), view.location(part, at), facts))
    yield from _check_rows(rows, "write the folder again with agentgym verl sft --force")


def _check_rows(rows: Mapping[str, Collection[_Row]], again: str) -> Iterator[Finding]:
    for part, of_part in rows.items():
        missing = [row for row in of_part if row.facts.error]
        if missing:
            more = f" ({len(missing)} such rows in {part})" if len(missing) > 1 else ""
            yield problem("tasks", f"{missing[0].place}: {missing[0].facts.error}{more}", again)
    train = rows.get("train", ())
    held_out = [row for row in train if row.facts.held_out]
    own = [row for row in held_out if not row.tasks_of]
    of_paper = [row for row in held_out if row.tasks_of]
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
    for part, of_part in rows.items():
        lost = [row for row in of_part if row.facts.unwinnable]
        if lost:
            yield warning(
                "tasks",
                f"{len(lost)} of {len(of_part)} rows of {part} cannot be won; {lost[0].place}: "
                f"{lost[0].facts.unwinnable}",
                f"{again}, without --split all",
            )
    if train and not held_out and not any(row.facts.error for row in train):
        yield ok("tasks", "no row of train is in a split for evaluation")


def _by_split(rows: Collection[_Row]) -> str:
    counts = Counter((row.env_id, row.facts.held_out) for row in rows)
    return ", ".join(f"{count} in {split} of {env_id}" for (env_id, split), count in counts.most_common())
