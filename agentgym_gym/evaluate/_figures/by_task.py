"""The episodes of a run, put together by task."""

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
    """What the episodes of one task came to. Those that a fault ended, the agent's too, are not scored.

    Attributes:
        env_id: The environment's gymnasium id.
        task_id: Which task.
        goal: The task in a few words, where the environment states one.
        episodes: How many episodes there are, scored or not.
        score: The mean of the scores; None where no episode was scored.
        known: Of how many scored episodes the environment says whether they solved the task.
        solved: How many of these did.
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
        """The share of its episodes that solved it; None where no episode says."""
        return self.solved / self.known if self.known else None


def by_task(records: Iterable[EpisodeRecord]) -> list[TaskResult]:
    """Return the tasks of episodes, by environment and task id. The order of the episodes does not matter."""
    tasks: dict[tuple[str, int], list[EpisodeRecord]] = {}
    for record in records:
        tasks.setdefault((record.env_id, record.task_id), []).append(record)
    return [_result(*key, tasks[key]) for key in sorted(tasks)]


def mean(values: Iterable[float]) -> float | None:
    """Return the mean, the same in every order of the values; None of nothing."""
    each = list(values)
    if not each:
        return None
    try:
        return fsum(each) / len(each)
    except OverflowError:  # the sum is more than a float can be, and the mean is not
        return fsum(value / len(each) for value in each)


def _result(env_id: str, task_id: int, records: list[EpisodeRecord]) -> TaskResult:
    scored = [record for record in records if record.scored]
    said = [record.success for record in scored if record.success is not None]
    goals = sorted({record.goal for record in records if record.goal is not None})
    return TaskResult(
        env_id=env_id,
        task_id=task_id,
        goal=goals[0] if goals else None,
        episodes=len(records),
        score=mean(record.score for record in scored if record.score is not None),
        known=len(said),
        solved=sum(said),
    )
