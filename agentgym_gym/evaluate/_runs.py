"""Runs that were played: found, and read from their folders."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agentgym_gym.errors import BadOption
from agentgym_gym.rollout._records import EpisodeRecord, read_records

__all__ = ["EPISODES", "PARTS", "SUMMARY", "Run", "counting", "find_runs", "is_training", "read_run"]

EPISODES = "episodes.jsonl"
PARTS = "episodes-*.jsonl"
"""The files of a training, of which each process writes one: see `agentgym_gym.evaluate._trainings`."""

SUMMARY = "summary.json"


@dataclass(frozen=True)
class Run:
    """One agent in one environment, as its folder has it.

    Attributes:
        path: The folder.
        facts: What made the run, as ``summary.json`` says under ``run``: ``env_id``, ``agent``, ``tasks``,
            ``samples``, ``seed``, ``options``, ``system_prompt``, ``server``, ``versions``, ``git``,
            ``finished`` and more. Empty where there is no summary.
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
        """The worlds of this project's servers that it was played on, as their replies name them.

        Empty for other servers, and where the summary does not say it. Scores on different worlds, or on
        different versions of one, are not compared.
        """
        served_by = self.facts.get("served_by")
        return tuple(sorted(set(filter(None, served_by)))) if isinstance(served_by, list) else ()

    @property
    def label(self) -> str:
        """Agent and environment in a few words."""
        return f"{self.agent} on {self.env_id.rpartition('/')[2]}"


def counting(records: Iterable[EpisodeRecord]) -> list[EpisodeRecord]:
    """Return the episodes that count: one for each task and sample, in their order.

    An episode that a fault ended counts where none of the same task and sample was scored; of several, the
    last does.
    """
    kept: dict[tuple[int, int], EpisodeRecord] = {}
    for record in records:
        key = record.task_id, record.sample
        if record.scored or key not in kept or not kept[key].scored:
            kept[key] = record
    return [kept[key] for key in sorted(kept)]


def find_runs(path: Path) -> list[Path]:
    """Return the folders of runs at a path: itself, or those below it, in the order of their names.

    Raises:
        BadOption: There is none.
    """
    folder = path.parent if path.name == EPISODES else path
    if (folder / EPISODES).is_file():
        return [folder]
    found = sorted(file.parent for file in folder.rglob(EPISODES)) if folder.is_dir() else []
    if not found and is_training(folder):
        raise BadOption(f"{path} holds a training and no run of agentgym eval: agentgym report shows it")
    if not found:
        raise BadOption(f"{path} holds no run: there is no {EPISODES} in it, nor in a folder below it")
    return found


def is_training(path: Path) -> bool:
    """Whether a folder is that of a training, as `verl_bridge` writes it."""
    return path.is_dir() and next(path.glob(PARTS), None) is not None


def read_run(path: Path) -> Run:
    """Read the folder of a run. An incomplete last line, which a killed run leaves, is left out.

    Args:
        path: The folder, or its ``episodes.jsonl``.

    Raises:
        BadOption: It is no run; the message names the file and the line.
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
