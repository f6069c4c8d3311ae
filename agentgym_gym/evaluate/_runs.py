"""Finds runs and reads them from their folders."""

from __future__ import annotations

import importlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from agentgym_gym._files import find_files
from agentgym_gym.errors import BadFile
from agentgym_gym.evaluate._figures.metrics import Summary, summarise
from agentgym_gym.evaluate._figures.prices import Price
from agentgym_gym.evaluate._notebook import plot_runs, runs_table
from agentgym_gym.evaluate._protocols.applied import protocol_text
from agentgym_gym.evaluate._world import in_world, world_of
from agentgym_gym.rollout._records import EpisodeRecord, read_records

__all__ = [
    "EPISODES",
    "SUMMARY",
    "TRAINING_EPISODES",
    "RunResult",
    "RunResults",
    "counting",
    "find_runs",
    "is_training",
    "read_run",
]

EPISODES = "episodes.jsonl"
TRAINING_EPISODES = "episodes-*.jsonl"
"""Files of a training, one for each process: see `agentgym_gym.evaluate._trainings`."""

SUMMARY = "summary.json"


@dataclass(frozen=True)
class RunResult:
    """The record of a run of one agent in one environment. Notebooks show its table.

    Attributes:
        path: The folder.
        facts: Facts about the run, from ``run`` in ``summary.json``: ``env_id``, ``agent``, ``tasks``,
            ``samples``, ``seed``, ``options``, ``system_prompt``, ``server``, ``versions``, ``git``,
            ``finished`` and more. Empty if there is no summary.
        records: The episodes that count, by task and sample.
        cost: The recorded cost of the tokens; None if unknown.
        known_summary: The metrics, if they are known already; they may count the requests of episodes that
            were played again.
    """

    path: Path
    facts: Mapping[str, Any]
    records: tuple[EpisodeRecord, ...]
    cost: float | None = None
    known_summary: Summary | None = field(default=None, repr=False, compare=False)

    @property
    def episodes(self) -> list[EpisodeRecord]:
        """The episodes that count, by task and sample."""
        return list(self.records)

    @cached_property
    def summary(self) -> Summary:
        """The metrics of the episodes."""
        if self.known_summary is not None:
            return self.known_summary
        price = self.facts.get("price")
        try:
            return summarise(self.records, Price(**price) if isinstance(price, Mapping) else None)
        except TypeError:  # not written by this library
            return summarise(self.records)

    @property
    def finished(self) -> bool | None:
        """Whether all episodes were played; None if unknown."""
        finished = self.facts.get("finished")
        return finished if isinstance(finished, bool) else None

    @property
    def stopped(self) -> str | None:
        """Why the run ended before all episodes were played, in words; None if it did not."""
        stopped = self.facts.get("stopped")
        return stopped if isinstance(stopped, str) else None

    @property
    def stopped_by(self) -> str | None:
        """The budget that ended the run, a field of `RunLimits`; None if none did."""
        limit = self.facts.get("stopped_by")
        return limit if isinstance(limit, str) else None

    def to_arrow(self) -> Any:
        """Return the episodes as a ``pyarrow.Table`` with a row for each; messages and steps are JSON.

        Raises:
            ModuleNotFoundError: pyarrow is not installed.
        """
        return importlib.import_module("pyarrow").Table.from_pylist(self._rows())

    def to_pandas(self) -> Any:
        """Return the episodes as a ``pandas.DataFrame``, with the columns of `to_arrow`.

        Raises:
            ModuleNotFoundError: pandas is not installed.
        """
        return importlib.import_module("pandas").DataFrame(self._rows())

    def _rows(self) -> list[dict[str, Any]]:
        return [
            {
                name: json.dumps(value, ensure_ascii=False) if isinstance(value, (dict, list)) else value
                for name, value in record.to_json().items()
            }
            for record in self.records
        ]

    def __repr__(self) -> str:
        return f"RunResult({self.label!r}, {len(self.records)} episodes)"

    def _repr_html_(self) -> str:
        return RunResults([self])._repr_html_()

    @property
    def env_id(self) -> str:
        """The environment's gymnasium id."""
        return str(self.facts.get("env_id") or (self.records[0].env_id if self.records else "?"))

    @property
    def agent(self) -> str:
        """The agent's name."""
        return str(self.facts.get("agent") or (self.records[0].agent if self.records else "?"))

    @property
    def world(self) -> str | None:
        """The world on which the run was played. Scores on different worlds are not comparable.

        It is ``local world 2, seed 0`` on a server of this project, with the version of its worlds;
        ``AgentGym's server`` if it was recognised; otherwise ``server of unknown make``. None for an
        environment of another library.
        """
        return world_of(self.env_id, self.facts, self.records)

    @property
    def env_label(self) -> str:
        """The environment's name with its world, such as ``WebShop-v0 (local world 2, seed 0)``."""
        return in_world(self.env_id, self.world)

    @property
    def protocol(self) -> str | None:
        """The protocol of the run with its deviations; None if it has none.

        An example is ``quick (1a2b3c4d), with temperature 0.7 in place of 0``.
        """
        return protocol_text(self.facts)

    @property
    def label(self) -> str:
        """A short label with the agent, the environment and its world, and the protocol."""
        return f"{self.agent} on {self.env_label}{f', protocol {self.protocol}' if self.protocol else ''}"


class RunResults(tuple[RunResult, ...]):
    """The results of several runs. Notebooks show their table."""

    __slots__ = ()

    def plot(self, metric: Literal["success", "score"] = "success", *, axes: Any = None) -> Any:
        """Plot a metric of each run with its 95 % interval.

        Args:
            metric: The success rate or the mean score.
            axes: The ``matplotlib.axes.Axes`` to draw on; by default those of a new figure.

        Returns:
            The axes.

        Raises:
            BadOption: The metric is unknown for all runs.
            MissingExtra: matplotlib is not installed.
        """
        return plot_runs([(each.label, each.summary) for each in self], metric, axes)

    def _repr_html_(self) -> str:
        return runs_table(
            (f"{each.label} (stopped: {each.stopped})" if each.stopped else each.label, each.summary)
            for each in self
        )


def counting(records: Iterable[EpisodeRecord]) -> list[EpisodeRecord]:
    """Return the episodes that count: one for each task and sample, sorted by both.

    The last scored episode of a task and sample counts. If none was scored, the last faulted one counts.
    """
    kept: dict[tuple[int, int], EpisodeRecord] = {}
    for record in records:
        key = record.task_id, record.sample
        if record.scored or key not in kept or not kept[key].scored:
            kept[key] = record
    return [kept[key] for key in sorted(kept)]


def find_runs(path: Path) -> list[Path]:
    """Return the run folders at a path: the path itself, or the run folders below it, sorted.

    Raises:
        BadOption: There is no run.
    """
    folder = path.parent if path.name == EPISODES else path
    if (folder / EPISODES).is_file():
        return [folder]
    found = sorted(file.parent for file in find_files(folder, EPISODES))
    if not found and is_training(folder):
        raise BadFile(
            f"{path} contains a training, not a run of agentgym eval: use agentgym report", path=path
        )
    if not found:
        raise BadFile(f"no run in {path}: found no {EPISODES} in it or below", path=path)
    return found


def is_training(path: Path) -> bool:
    """Return whether a folder contains a training, as written by `verl_bridge`."""
    return path.is_dir() and next(path.glob(TRAINING_EPISODES), None) is not None


def read_run(path: str | Path) -> RunResult:
    """Read a run folder. An incomplete last line, left by a killed run, is skipped.

    Args:
        path: The folder, or its ``episodes.jsonl``.

    Raises:
        BadOption: The folder is not a valid run; the message names the file and the line.
    """
    path = Path(path)
    folder = path.parent if path.name == EPISODES else path
    records, _ = read_records(folder / EPISODES, torn_end=True)
    summary = folder / SUMMARY
    facts: Any = {}
    cost = None
    if summary.exists():
        try:
            written = json.loads(summary.read_bytes())
            facts, cost = written["run"], _cost(written)
        except (OSError, ValueError, TypeError, KeyError, RecursionError) as error:
            raise BadFile(f"{summary} is not the summary of a run: {error}", path=summary) from None
        if not isinstance(facts, dict):
            raise BadFile(f"{summary} is not the summary of a run: 'run' should be an object", path=summary)
    return RunResult(folder, facts, tuple(counting(records)), cost)


def _cost(summary: Mapping[str, Any]) -> float | None:
    """Return the cost in a summary; earlier versions have no ``timing``."""
    timing = summary.get("timing")
    cost = timing.get("cost") if isinstance(timing, Mapping) else None
    return float(cost) if isinstance(cost, (int, float)) and not isinstance(cost, bool) else None
