"""Trainings: the episodes that `verl_bridge` writes while it plays them, read as runs.

The folder of a training has a file ``episodes-*.jsonl`` for each process that played, and for each
environment a ``run-*.json``, which says what its episodes share. It may be read while the training goes on.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from agentgym_gym.errors import BadOption
from agentgym_gym.evaluate._runs import PARTS, Run, is_training
from agentgym_gym.rollout._records import EpisodeRecord, read_records

__all__ = ["current", "find_trainings", "read_training"]

_PHASES = {False: "training", True: "validation", None: "training or validation"}


def find_trainings(path: Path) -> list[Path]:
    """Return the folders of trainings at a path: itself, or those below it, in the order of their names."""
    if is_training(path):
        return [path]
    return sorted({file.parent for file in path.rglob(PARTS)}) if path.is_dir() else []


def read_training(path: Path) -> list[Run]:
    """Read the folder of a training: a run for each environment, its training and validation apart.

    The episodes are in the order of their training steps and tasks. Those of one task in one step are its
    samples. An incomplete last line of a file, which a process that writes or was killed leaves, is left out.

    Args:
        path: The folder.

    Returns:
        The runs. Their facts have ``phase``: ``training``, ``validation``, or both where verl does not tell.

    Raises:
        BadOption: It is no training; the message names the file and the line.
    """
    files = sorted(path.glob(PARTS))
    if not files:
        raise BadOption(f"{path} holds no training: there is no {PARTS} in it")
    records = current([record for file in files for record in read_records(file, torn_end=True)[0]])
    facts = {each["env_id"]: each for each in map(_facts, sorted(path.glob("run-*.json")))}
    groups: dict[tuple[str, bool | None], list[EpisodeRecord]] = {}
    for record in records:
        groups.setdefault((record.env_id, record.validation), []).append(record)
    order = sorted(groups, key=lambda key: (key[0], str(key[1])))  # training, then validation
    return [
        Run(
            path,
            {**facts.get(env_id, {"env_id": env_id}), "phase": _PHASES[validation]},
            tuple(_numbered(groups[env_id, validation])),
        )
        for env_id, validation in order
    ]


def current(records: Sequence[EpisodeRecord]) -> list[EpisodeRecord]:
    """Leave out what a resumed training played anew.

    A training that is resumed begins at its last checkpoint. What was played before for the steps that it
    plays again was learned from by weights that are gone. Where an episode does not say which start of the
    training it is of, or for which step it was played, it stays.
    """
    sessions: dict[str, list[EpisodeRecord]] = {}
    for record in records:
        if record.session is not None and record.step is not None and record.ended is not None:
            sessions.setdefault(record.session, []).append(record)
    in_time = sorted(sessions, key=lambda name: min(record.ended or "" for record in sessions[name]))
    until: dict[str, dict[bool, float]] = {}
    trained, validated = float("inf"), float("inf")  # the first steps of all later starts
    for name in reversed(in_time):
        until[name] = {False: trained, True: min(validated, trained)}
        for record in sessions[name]:
            step = float(record.step or 0)
            if record.validation:
                validated = min(validated, step)
            else:
                trained = min(trained, step)
    return [record for record in records if _counts(record, until)]


def _counts(record: EpisodeRecord, until: dict[str, dict[bool, float]]) -> bool:
    if record.step is None or record.session not in until:
        return True
    return record.step < until[record.session][bool(record.validation)]


def _numbered(records: Iterable[EpisodeRecord]) -> list[EpisodeRecord]:
    """Return the episodes in order, those of one task in one step numbered as its samples."""
    counts: Counter[tuple[int | None, int]] = Counter()
    numbered = []
    for record in sorted(records, key=_place):
        key = record.step, record.task_id
        numbered.append(replace(record, sample=counts[key]))
        counts[key] += 1
    return numbered


def _place(record: EpisodeRecord) -> tuple[int, int, str]:
    return -1 if record.step is None else record.step, record.task_id, record.ended or ""


def _facts(path: Path) -> dict[str, Any]:
    try:
        facts = json.loads(path.read_bytes())["run"]
        if isinstance(facts["env_id"], str):
            return dict(facts)
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise BadOption(f"{path} does not say what a run is: {error!r}") from None
    raise BadOption(f"{path} does not say what a run is: 'env_id' should be text")
