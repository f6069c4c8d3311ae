"""Tables of several runs: one row per run, and success by environment and model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias

from agentgym_gym.catalogue import environments
from agentgym_gym.evaluate._figures.metrics import Summary, summarise
from agentgym_gym.evaluate._world import in_world

if TYPE_CHECKING:
    from pathlib import Path

    from agentgym_gym.evaluate._runs import RunResult

__all__ = ["RunRow", "SuccessRow", "Table", "split_of", "table_of"]

_Key: TypeAlias = "tuple[str, str | None, str | None, str | None]"


@dataclass(frozen=True)
class RunRow:
    """The results of one run.

    Attributes:
        model: Name of the model or agent, unique among the runs with the same `key`.
        env_id: The environment's gymnasium id.
        world: The world, as `RunResult.world`.
        split: Name of the split that contains all tasks of the run; None if unknown.
        protocol: The protocol with its deviations, as `RunResult.protocol`.
        tasks: Ids of the tasks.
        summary: The metrics.
        cost: Cost of the tokens; None if unknown.
        wall_seconds: Wall-clock seconds of the run; None if unknown.
        finished: Whether all episodes were played; None if unknown.
        path: The folder.
    """

    model: str
    env_id: str
    world: str | None
    split: str | None
    protocol: str | None
    tasks: frozenset[int]
    summary: Summary
    cost: float | None
    wall_seconds: float | None
    finished: bool | None
    path: Path

    @property
    def environment(self) -> str:
        """The environment's name with its world."""
        return in_world(self.env_id, self.world)

    @property
    def key(self) -> _Key:
        """Runs with the same key are comparable."""
        return self.env_id, self.world, self.split, self.protocol

    @property
    def pass_at_k(self) -> float | None:
        """The pass@k for k = ``summary.samples``."""
        return self.summary.pass_at.get(self.summary.samples)

    @property
    def pass_hat_k(self) -> float | None:
        """The pass^k for k = ``summary.samples``."""
        return self.summary.pass_hat.get(self.summary.samples)

    def to_json(self) -> dict[str, Any]:
        """Return the row as flat JSON values under the names of the columns in CSV."""
        summary, k = self.summary, self.summary.samples
        low_high = {
            "success": summary.success_interval,
            "score": summary.score_interval,
            "pass_at_k": summary.pass_at_intervals.get(k),
            "pass_hat_k": summary.pass_hat_intervals.get(k),
        }
        values: dict[str, Any] = {
            "model": self.model,
            "env_id": self.env_id,
            "world": self.world,
            "split": self.split,
            "protocol": self.protocol,
            "tasks": summary.tasks,
            "k": k,
            "episodes": summary.episodes,
            "faulted": summary.faulted,
            "success": summary.success_rate,
            "score": summary.mean_score,
            "pass_at_k": self.pass_at_k,
            "pass_hat_k": self.pass_hat_k,
            "turns": summary.mean_turns,
            "parse_error_share": summary.parse_error_share,
            "prompt_tokens": summary.tokens.prompt,
            "completion_tokens": summary.tokens.completion,
            "cost": self.cost,
            "wall_seconds": self.wall_seconds,
            "finished": self.finished,
            "path": str(self.path),
        }
        with_bounds: dict[str, Any] = {}
        for name, value in values.items():
            with_bounds[name] = value
            if name in low_high:
                low, high = low_high[name] or (None, None)
                with_bounds |= {f"{name}_low": low, f"{name}_high": high}
        return with_bounds


@dataclass(frozen=True)
class SuccessRow:
    """The comparable runs of all models: in one environment, on one world, in one split, by one protocol.

    Attributes:
        environment: The environment's name with its world.
        split: The split; None if unknown.
        protocol: The protocol with its deviations; None if there is none.
        runs: The run of each model, by name.
    """

    environment: str
    split: str | None
    protocol: str | None
    runs: Mapping[str, RunRow]

    @property
    def same_tasks(self) -> bool:
        """Whether all runs played the same tasks."""
        return len({run.tasks for run in self.runs.values()}) == 1


@dataclass(frozen=True)
class Table:
    """The results of runs.

    Attributes:
        rows: One row per run, in the order of the environments.
    """

    rows: tuple[RunRow, ...]

    @property
    def models(self) -> list[str]:
        """The names of the models."""
        return list(dict.fromkeys(row.model for row in self.rows))

    @property
    def by_environment(self) -> list[SuccessRow]:
        """The runs by environment, world, split and protocol, which are never combined."""
        groups: dict[_Key, dict[str, RunRow]] = {}
        for row in self.rows:
            groups.setdefault(row.key, {})[row.model] = row
        firsts = [next(iter(runs.values())) for runs in groups.values()]
        return [
            SuccessRow(first.environment, first.split, first.protocol, runs)
            for first, runs in zip(firsts, groups.values(), strict=True)
        ]

    @property
    def notes(self) -> list[str]:
        """Sentences about rows that a reader could misunderstand."""
        renamed = [f"{row.model} is the run in {row.path}" for row in self.rows if _NUMBERED in row.model]
        return [
            *(
                f"{row.environment}{f', {row.split}' if row.split else ''}: the runs played different tasks"
                for row in self.by_environment
                if not row.same_tasks
            ),
            *(
                f"{row.model} in {row.environment} is not finished"
                for row in self.rows
                if row.finished is False
            ),
            *dict.fromkeys(renamed),
        ]


_NUMBERED = " #"  # between the name of a model and the number of its run


def table_of(runs: Iterable[RunResult], summaries: Sequence[Summary] | None = None) -> Table:
    """Return the table of runs. Comparable runs of one model get numbers, as in ``model #2``.

    Args:
        runs: The runs.
        summaries: Their metrics; by default from their records.
    """
    rows: dict[_Key, list[RunRow]] = {}
    seen: Counter[tuple[str, _Key]] = Counter()
    for i, run in enumerate(runs):
        row = _row(run, summarise(run.records) if summaries is None else summaries[i])
        seen[run.agent, row.key] += 1
        number = seen[run.agent, row.key]
        if number > 1:
            row = replace(row, model=f"{run.agent}{_NUMBERED}{number}")
        rows.setdefault(row.key, []).append(row)
    return Table(tuple(row for each in rows.values() for row in each))


def split_of(run: RunResult) -> str | None:
    """Return the split of a run: the recorded one, or else the one that contains all of its tasks.

    Tasks of several splits are ``all``. Environments of other libraries have no splits.
    """
    options = run.facts.get("options")
    recorded = options.get("split") if isinstance(options, Mapping) else None
    if isinstance(recorded, str):
        return recorded
    name = run.env_id.rpartition(":")[2]
    known = next((environment for environment in environments() if name in environment.ids), None)
    tasks = {record.task_id for record in run.records}
    if known is None or not tasks:
        return None
    parts = [name for name, ids in known.splits.items() if name != "all" and tasks <= set(ids)]
    if parts:
        return parts[0]
    return "all" if all(map(known.has_task, tasks)) else None


def _row(run: RunResult, summary: Summary) -> RunRow:
    seconds, finished = run.facts.get("wall_seconds"), run.facts.get("finished")
    return RunRow(
        model=run.agent,
        env_id=run.env_id,
        world=run.world,
        split=split_of(run),
        protocol=run.protocol,
        tasks=frozenset(record.task_id for record in run.records),
        summary=summary,
        cost=run.cost if summary.cost is None else summary.cost,
        wall_seconds=float(seconds) if isinstance(seconds, (int, float)) else None,
        finished=finished if isinstance(finished, bool) else None,
        path=run.path,
    )
