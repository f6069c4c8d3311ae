"""The episodes of a run, grouped by task."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import fsum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agentgym_gym.rollout._records import EpisodeRecord

__all__ = ["TaskResult", "by_task", "mean"]


@dataclass(frozen=True)
class TaskResult:
    """Results of the episodes of one task. Faulted episodes, of the environment or the agent, are unscored.

    Attributes:
        env_id: The environment's gymnasium id.
        task_id: The task id.
        goal: The goal of the task, if the environment states one.
        episodes: Number of episodes, scored or not.
        score: Mean score; None if no episode is scored.
        known: Number of scored episodes for which the environment reports success or failure.
        solved: Number of these that solved the task.
    """

    env_id: str
    task_id: int
    goal: str | None
    episodes: int
    score: float | None
    known: int
    solved: int

    @property
    def success(self) -> float | None:
        """The share of episodes that solved the task; None if no episode reports success or failure."""
        return self.solved / self.known if self.known else None


def by_task(records: Iterable[EpisodeRecord]) -> list[TaskResult]:
    """Return the results by task, sorted by environment and task id, for episodes in any order."""
    tasks: dict[tuple[str, int], list[EpisodeRecord]] = {}
    for record in records:
        tasks.setdefault((record.env_id, record.task_id), []).append(record)
    return [_result(*key, tasks[key]) for key in sorted(tasks)]


def mean(values: Iterable[float]) -> float | None:
    """Return the mean, independent of the order of the values; None if there are no values."""
    numbers = list(values)
    if not numbers:
        return None
    try:
        return fsum(numbers) / len(numbers)
    except OverflowError:  # the sum overflows a float; the mean does not
        return fsum(value / len(numbers) for value in numbers)


def _result(env_id: str, task_id: int, records: list[EpisodeRecord]) -> TaskResult:
    scored = [record for record in records if record.scored]
    outcomes = [record.success for record in scored if record.success is not None]
    goals = sorted({record.goal for record in records if record.goal is not None})
    return TaskResult(
        env_id=env_id,
        task_id=task_id,
        goal=goals[0] if goals else None,
        episodes=len(records),
        score=mean(record.score for record in scored if record.score is not None),
        known=len(outcomes),
        solved=sum(outcomes),
    )
