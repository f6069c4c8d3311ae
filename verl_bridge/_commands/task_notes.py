"""Describe the tasks of a training: their splits, and tasks that should not be among them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from typing import TYPE_CHECKING

from agentgym_gym.commands import count_by_split

if TYPE_CHECKING:
    from agentgym_gym.catalogue import Environment

__all__ = ["describe_tasks"]


def describe_tasks(environment: Environment, train: Collection[int], val: Collection[int]) -> Iterator[str]:
    """Yield a line on the tasks of a training, and a warning if some are for evaluation or unwinnable.

    Args:
        environment: The environment.
        train: The tasks to train on.
        val: The tasks for validation.
    """
    line = f"{environment.name}: training on {_by_split(environment, train)}"
    yield f"{line}, validation on {_by_split(environment, val)}" if val else line
    held_out = Counter(filter(None, map(environment.held_out, train)))
    if held_out:
        yield (
            f"warning: {held_out.total():,} training tasks of {environment.name} are for evaluation "
            f"({_in_words(held_out)}); a score on them does not measure generalization"
        )
    unwinnable = sum(task in environment.unwinnable for task in train)
    if unwinnable:
        yield f"warning: {unwinnable:,} training tasks of {environment.name} cannot be won"


def _by_split(environment: Environment, tasks: Collection[int]) -> str:
    counts = count_by_split(environment, tasks)
    total = f"{len(tasks):,} task{'s' * (len(tasks) != 1)}"
    return f"{total} of {next(iter(counts))}" if len(counts) == 1 else f"{total} ({_in_words(counts)})"


def _in_words(counts: Mapping[str, int]) -> str:
    """Return numbers by name as text, such as ``471 of test, 10 of dev``."""
    return ", ".join(f"{count:,} of {name}" for name, count in Counter(counts).most_common())
