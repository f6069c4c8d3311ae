"""Reads trainings, whose episodes `verl_bridge` writes during the rollouts, as runs.

A training folder has a file ``episodes-*.jsonl`` for each rollout process, and for each environment a file
``run-*.json`` with the facts that its episodes share. The folder can be read while the training is running.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from agentgym_gym._files import find_files
from agentgym_gym.errors import BadFile
from agentgym_gym.evaluate._runs import TRAINING_EPISODES, RunResult, is_training
from agentgym_gym.rollout._records import EpisodeRecord, read_records

__all__ = ["drop_superseded", "find_trainings", "read_training"]

_PHASES = {False: "training", True: "validation", None: "training or validation"}


def find_trainings(path: Path) -> list[Path]:
    """Return the training folders at a path: the path itself, or the training folders below it, sorted."""
    if is_training(path):
        return [path]
    return sorted({file.parent for file in find_files(path, TRAINING_EPISODES)})


def read_training(path: Path) -> list[RunResult]:
    """Read a training folder: for each environment, one run for training and one for validation.

    The episodes are sorted by training step and task. Episodes of the same task and step are its samples. An
    incomplete last line of a file, from a process that is writing or was killed, is skipped.

    Args:
        path: The folder.

    Returns:
        The runs. Their facts contain ``phase``: ``training``, ``validation``, or ``training or validation``
        if verl does not distinguish them.

    Raises:
        BadOption: The folder is not a valid training; the message names the file and the line.
    """
    files = sorted(path.glob(TRAINING_EPISODES))
    if not files:
        raise BadFile(f"{path} has no training: there is no {TRAINING_EPISODES} in it", path=path)
    records = drop_superseded([record for file in files for record in read_records(file, torn_end=True)[0]])
    facts = {each["env_id"]: each for each in map(_facts, sorted(path.glob("run-*.json")))}
    groups: dict[tuple[str, bool | None], list[EpisodeRecord]] = {}
    for record in records:
        groups.setdefault((record.env_id, record.validation), []).append(record)
    order = sorted(groups, key=lambda key: (key[0], str(key[1])))  # training, then validation
    return [
        RunResult(
            path,
            {**facts.get(env_id, {"env_id": env_id}), "phase": _PHASES[validation]},
            tuple(_numbered(groups[env_id, validation])),
        )
        for env_id, validation in order
    ]


def drop_superseded(records: Sequence[EpisodeRecord]) -> list[EpisodeRecord]:
    """Drop the episodes that a resumed training has superseded.

    A resumed training restarts at its last checkpoint and repeats the steps after it. The earlier episodes of
    these steps belong to weights that were lost, so they are dropped. Episodes without a session or a step
    are kept.
    """
    sessions: dict[str, list[EpisodeRecord]] = {}
    for record in records:
        if record.session is not None and record.step is not None and record.ended is not None:
            sessions.setdefault(record.session, []).append(record)
    in_time = sorted(sessions, key=lambda name: min(record.ended or "" for record in sessions[name]))
    until: dict[str, dict[bool, float]] = {}
    trained, validated = float("inf"), float("inf")  # first steps of all later sessions
    for name in reversed(in_time):
        until[name] = {False: trained, True: min(validated, trained)}
        for record in sessions[name]:
            step = float(record.step or 0)
            if record.validation:
                validated = min(validated, step)
            else:
                trained = min(trained, step)
    return [record for record in records if _is_current(record, until)]


def _is_current(record: EpisodeRecord, until: dict[str, dict[bool, float]]) -> bool:
    if record.step is None or record.session not in until:
        return True
    return record.step < until[record.session][bool(record.validation)]


def _numbered(records: Iterable[EpisodeRecord]) -> list[EpisodeRecord]:
    """Return the episodes in order, with sample numbers for episodes of the same task and step."""
    counts: Counter[tuple[int | None, int]] = Counter()
    numbered = []
    for record in sorted(records, key=_sort_key):
        key = record.step, record.task_id
        numbered.append(replace(record, sample=counts[key]))
        counts[key] += 1
    return numbered


def _sort_key(record: EpisodeRecord) -> tuple[int, int, str]:
    return -1 if record.step is None else record.step, record.task_id, record.ended or ""


def _facts(path: Path) -> dict[str, Any]:
    try:
        facts = json.loads(path.read_bytes())["run"]
        if isinstance(facts["env_id"], str):
            return dict(facts)
    except (OSError, ValueError, TypeError, KeyError, RecursionError) as error:
        raise BadFile(f"{path} is not a run file: {error!r}", path=path) from None
    raise BadFile(f"{path} is not a run file: 'env_id' should be text", path=path)
