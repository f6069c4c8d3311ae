"""Finds runs and reads them from their folders."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agentgym_gym.errors import BadOption
from agentgym_gym.rollout._records import EpisodeRecord, read_records

__all__ = [
    "EPISODES",
    "SUMMARY",
    "TRAINING_EPISODES",
    "Run",
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
class Run:
    """A run of one agent in one environment, as read from its folder.

    Attributes:
        path: The folder.
        facts: Facts about the run, from ``run`` in ``summary.json``: ``env_id``, ``agent``, ``tasks``,
            ``samples``, ``seed``, ``options``, ``system_prompt``, ``server``, ``versions``, ``git``,
            ``finished`` and more. Empty if there is no summary.
        records: The episodes that count, by task and sample.
    """

    path: Path
    facts: Mapping[str, Any]
    records: tuple[EpisodeRecord, ...]

    @property
    def env_id(self) -> str:
        """The environment's gymnasium id."""
        return str(self.facts.get("env_id") or (self.records[0].env_id if self.records else "?"))

    @property
    def agent(self) -> str:
        """The agent's name."""
        return str(self.facts.get("agent") or (self.records[0].agent if self.records else "?"))

    @property
    def worlds(self) -> tuple[str, ...]:
        """The worlds of this project's servers on which the run was played, as named in their replies.

        Empty for other servers, or if the summary does not record them. Scores on different worlds, or on
        different versions of a world, are not comparable.
        """
        served_by = self.facts.get("served_by")
        return tuple(sorted(set(filter(None, served_by)))) if isinstance(served_by, list) else ()

    @property
    def label(self) -> str:
        """A short label with the agent and the environment."""
        return f"{self.agent} on {self.env_id.rpartition('/')[2]}"


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
    found = sorted(file.parent for file in folder.rglob(EPISODES)) if folder.is_dir() else []
    if not found and is_training(folder):
        raise BadOption(f"{path} holds a training, not a run of agentgym eval: use agentgym report")
    if not found:
        raise BadOption(f"{path} holds no run: neither it nor a folder below it has {EPISODES}")
    return found


def is_training(path: Path) -> bool:
    """Return whether a folder contains a training, as written by `verl_bridge`."""
    return path.is_dir() and next(path.glob(TRAINING_EPISODES), None) is not None


def read_run(path: Path) -> Run:
    """Read a run folder. An incomplete last line, left by a killed run, is skipped.

    Args:
        path: The folder, or its ``episodes.jsonl``.

    Raises:
        BadOption: The folder is not a valid run; the message names the file and the line.
    """
    folder = path.parent if path.name == EPISODES else path
    records, _ = read_records(folder / EPISODES, torn_end=True)
    summary = folder / SUMMARY
    facts: Any = {}
    if summary.exists():
        try:
            facts = json.loads(summary.read_bytes())["run"]
        except (OSError, ValueError, TypeError, KeyError) as error:
            raise BadOption(f"{summary} is not the summary of a run: {error}") from None
        if not isinstance(facts, dict):
            raise BadOption(f"{summary} is not the summary of a run: 'run' should be an object")
    return Run(folder, facts, tuple(counting(records)))
