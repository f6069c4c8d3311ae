"""Paired comparison of two runs, task by task."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from math import isclose
from typing import TYPE_CHECKING, Any

from agentgym_gym._text import shown
from agentgym_gym.errors import BadFile, BadOption
from agentgym_gym.evaluate._figures.by_task import TaskResult, by_task, mean
from agentgym_gym.evaluate._figures.intervals import Interval, bootstrap
from agentgym_gym.evaluate._figures.p_values import permutation_test
from agentgym_gym.evaluate._protocols.applied import refused_fields
from agentgym_gym.rollout._history import History

if TYPE_CHECKING:
    from agentgym_gym.evaluate._runs import RunResult

__all__ = ["Comparison", "Paired", "compare_runs"]


@dataclass(frozen=True)
class Paired:
    """One metric of two runs A and B, over the tasks for which both runs have it.

    Attributes:
        tasks: Number of tasks.
        a: Mean of A over these tasks.
        b: Mean of B over these tasks.
        difference: B minus A.
        interval: 95 % confidence interval of the difference, by the bootstrap over tasks; None if all tasks
            differ by the same amount or there are fewer than two tasks.
        p_value: Two-sided p-value of the paired permutation test.
        draws: Number of sign vectors that the test sampled; None if the test is exact.
        wins: Number of tasks on which B is better.
        losses: Number of tasks on which A is better.
        ties: Number of tasks on which both are equal.
    """

    tasks: int
    a: float | None
    b: float | None
    difference: float | None
    interval: Interval
    p_value: float | None
    draws: int | None
    wins: int
    losses: int
    ties: int


@dataclass(frozen=True)
class Comparison:
    """A run B compared with a baseline run A.

    Attributes:
        env_id: The environment of both runs.
        a: The baseline run.
        b: The run that is compared with it.
        success: Comparison of the success rates of the tasks.
        score: Comparison of the mean scores of the tasks.
        left_out: Ids of the tasks that are excluded from both metrics, by reason.
        success_unknown: Ids of the tasks that are excluded only from success, because one run has no episode
            that reports it.
        fixed: Ids of the tasks that B solves and A does not. A run solves a task if at least half of the
            scored episodes of the task solve it.
        broken: Ids of the tasks that A solves and B does not.
        unchanged: Ids of the other tasks for which both runs report success.
        warnings: Other differences between the runs, as sentences.
        names: Names of the runs in these sentences.
    """

    env_id: str
    a: RunResult
    b: RunResult
    success: Paired
    score: Paired
    left_out: Mapping[str, tuple[int, ...]]
    success_unknown: tuple[int, ...]
    fixed: tuple[int, ...]
    broken: tuple[int, ...]
    unchanged: tuple[int, ...]
    warnings: tuple[str, ...]
    names: tuple[str, str] = ("A", "B")

    def to_json(self) -> dict[str, Any]:
        """Return a JSON object."""
        return {
            "env_id": self.env_id,
            "a": {"name": self.names[0], "path": str(self.a.path), "agent": self.a.agent},
            "b": {"name": self.names[1], "path": str(self.b.path), "agent": self.b.agent},
            "success": asdict(self.success),
            "score": asdict(self.score),
            "left_out": {reason: list(tasks) for reason, tasks in self.left_out.items()},
            "success_unknown": list(self.success_unknown),
            "fixed": list(self.fixed),
            "broken": list(self.broken),
            "unchanged": list(self.unchanged),
            "warnings": list(self.warnings),
        }


def compare_runs(a: RunResult, b: RunResult, *, names: tuple[str, str] = ("A", "B")) -> Comparison:
    """Compare two runs in one environment, paired by task.

    Each task counts once, with the mean over its scored episodes. The comparison excludes tasks that lack a
    scored episode in either run. It also excludes tasks for which the runs have different goals, because two
    servers may number the same goals differently.

    Args:
        a: The baseline run.
        b: The run that is compared with it.
        names: Names of the runs in warnings and reasons.

    Raises:
        BadOption: The runs are of different environments or worlds.
    """
    if a.env_id != b.env_id:
        raise BadFile(
            f"{a.path} is a run in {a.env_id}, and {b.path} in {b.env_id}: compare runs in one environment",
            path=a.path,
        )
    if a.world != b.world:
        raise BadFile(
            f"{a.path} was played in {a.env_label}, and {b.path} in {b.env_label}: scores on different "
            "worlds are not compared",
            path=a.path,
        )
    ours, theirs = _by_id(a), _by_id(b)
    reasons = {task: _reason(ours.get(task), theirs.get(task), names) for task in sorted({*ours, *theirs})}
    pairs = [(ours[task], theirs[task]) for task, reason in reasons.items() if reason is None]
    left_out: dict[str, list[int]] = {}
    for task, reason in reasons.items():
        if reason is not None:
            left_out.setdefault(reason, []).append(task)
    known = [(x, y) for x, y in pairs if x.success is not None and y.success is not None]
    changes = {task.task_id: _solves(other) - _solves(task) for task, other in known}
    return Comparison(
        env_id=a.env_id,
        a=a,
        b=b,
        success=_paired([(x.success, y.success) for x, y in known]),
        score=_paired([(x.score, y.score) for x, y in pairs]),
        left_out={reason: tuple(tasks) for reason, tasks in left_out.items()},
        success_unknown=tuple(x.task_id for x, y in pairs if x.success is None or y.success is None),
        fixed=tuple(task for task, change in changes.items() if change > 0),
        broken=tuple(task for task, change in changes.items() if change < 0),
        unchanged=tuple(task for task, change in changes.items() if not change),
        warnings=tuple(_differences(a, b, names)),
        names=names,
    )


def _solves(task: TaskResult) -> bool:
    return 2 * task.solved >= task.known


def _by_id(run: RunResult) -> dict[int, TaskResult]:
    return {task.task_id: task for task in by_task(run.records)}


def _reason(a: TaskResult | None, b: TaskResult | None, names: tuple[str, str]) -> str | None:
    """Return the reason for excluding a task, or None to keep it."""
    if a is None or b is None:
        return f"not in {names[0] if a is None else names[1]}"
    if a.goal is not None and b.goal is not None and a.goal != b.goal:
        return "another goal in {} than in {}".format(*names)
    unscored = [name for task, name in zip((a, b), names, strict=True) if task.score is None]
    return f"not scored in {' and '.join(unscored)}" if unscored else None


def _paired(pairs: Sequence[tuple[float | None, float | None]]) -> Paired:
    values = [(x, y) for x, y in pairs if x is not None and y is not None]
    differences = [0.0 if isclose(x, y) else y - x for x, y in values]  # rounding of equal means
    test = permutation_test(differences) if values else None
    wins, losses = sum(d > 0 for d in differences), sum(d < 0 for d in differences)
    return Paired(
        tasks=len(values),
        a=mean(x for x, _ in values),
        b=mean(y for _, y in values),
        difference=mean(differences),
        interval=bootstrap(differences),
        p_value=None if test is None else test.p_value,
        draws=None if test is None else test.draws,
        wins=wins,
        losses=losses,
        ties=len(values) - wins - losses,
    )


def _differences(a: RunResult, b: RunResult, names: tuple[str, str]) -> Iterable[str]:
    """Yield a warning for each difference between the runs besides the agent, and for each missing fact."""
    for run, name in zip((a, b), names, strict=True):
        if not run.facts:
            yield f"{name} has no summary.json: its options cannot be compared"
        if run.facts.get("finished") is False:
            yield f"{name} is not finished"
    difference = "{} differs: {} in " + names[0] + ", {} in " + names[1]
    if a.protocol != b.protocol:
        yield difference.format("the protocol", a.protocol or "none", b.protocol or "none")
    if a.facts and b.facts:
        yield from (difference.format(*each) for each in _different_settings(a, b))
        if a.facts.get("system_prompt") != b.facts.get("system_prompt"):
            yield "the system prompt differs"
    samples = [max((task.episodes for task in by_task(run.records)), default=0) for run in (a, b)]
    if samples[0] != samples[1]:
        yield difference.format("the number of samples", *samples)


def _different_settings(a: RunResult, b: RunResult) -> Iterable[tuple[str, str, str]]:
    """Yield the name and both values of each setting that differs."""
    first, other = (options if isinstance(options, dict) else {} for options in map(_options, (a, b)))
    for name in sorted({*first, *other}):
        if first.get(name) != other.get(name):
            yield name, shown(first.get(name)), shown(other.get(name))
    refused, other_refused = (", ".join(refused_fields(run.facts)) or "nothing" for run in (a, b))
    if refused != other_refused:
        yield "what the model server refused", refused, other_refused
    histories = _history(a), _history(b)
    if None not in histories and histories[0] != histories[1]:
        yield "the history", str(histories[0]), str(histories[1])


def _options(run: RunResult) -> Any:
    return run.facts.get("options")


def _history(run: RunResult) -> str | None:
    """Return the history policy of the run's agent; None if the agent has none."""
    settings = run.facts.get("agent_settings")
    history = settings.get("history") if isinstance(settings, dict) else None
    if not isinstance(history, dict):
        return None
    try:
        return str(History(**history))
    except (TypeError, BadOption):  # of another version
        return shown(history)
