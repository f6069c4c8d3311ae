"""Parses task selections such as ``0:50``."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from agentgym_gym.errors import BadOption

if TYPE_CHECKING:
    from agentgym_gym.catalogue import Environment

__all__ = ["is_tasks", "parse_tasks", "tasks_of"]

_PART = re.compile(r"(?P<one>\d{1,18})|(?P<start>\d{1,18})?:(?P<stop>\d{1,18})?")


def is_tasks(text: str) -> bool:
    """Return whether a text selects tasks by number, as ``0:50`` does; otherwise it is the path of a file."""
    return all(map(_match, text.replace(" ", "").split(",")))


def _match(part: str) -> re.Match[str] | None:
    return _PART.fullmatch(":" if part == "all" else part)


def parse_tasks(text: str, tasks: Sequence[int]) -> list[int]:
    """Return task ids from text such as ``0:50``, ``3``, ``1,2,5``, ``10:``, ``0:5,40`` or ``all``.

    Args:
        text: Ids and ranges, separated by commas. A range excludes its end, as in Python.
        tasks: The existing ids.

    Returns:
        The ids in the order of the text, without duplicates.

    Raises:
        BadOption: The text has a syntax error, or contains an id that does not exist.
    """
    counted = isinstance(tasks, range) and tasks.step == 1  # may be too long to iterate over
    least, most = (tasks[0], tasks[-1]) if counted else (min(tasks), max(tasks))
    chosen: list[int] = []
    for part in text.replace(" ", "").split(","):
        match = _match(part)
        if match is None:
            raise BadOption(
                "tasks", text, problem="cannot be read; they look like '0:50', '3', '1,2,5', '10:' or 'all'"
            )
        if match["one"]:
            start, stop = int(match["one"]), int(match["one"]) + 1
        else:
            start = int(match["start"]) if match["start"] else least
            stop = int(match["stop"]) if match["stop"] else most + 1
        within = least <= start and stop <= most + 1
        those = range(start, stop) if counted and within else tasks
        found = [task for task in those if start <= task < stop] if within else []
        if not found:
            raise BadOption("tasks", part, problem=f"are not among those there are, {least} to {most}")
        chosen += found
    return list(dict.fromkeys(chosen))


def tasks_of(environment: Environment, text: str, split: str | None) -> list[int]:
    """Return the task ids of an environment that a text selects.

    Args:
        environment: The environment.
        text: A task selection, as for :func:`parse_tasks`.
        split: The split to select from. By default ``all`` selects the training split, and any other
            text selects from all splits.

    Raises:
        BadOption: The split or the tasks do not exist.
    """
    those = environment.task_ids if split is None and text != "all" else environment.split(split)
    return parse_tasks(text, those)
