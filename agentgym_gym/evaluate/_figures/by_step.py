"""Metrics of each training step."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from agentgym_gym.evaluate._figures.by_task import mean

if TYPE_CHECKING:
    from agentgym_gym.rollout._records import EpisodeRecord

__all__ = ["by_step"]


def by_step(records: Iterable[EpisodeRecord]) -> dict[str, list[Any]]:
    """Return the metrics of each training step, as columns.

    Averages are over the scored episodes of a step, as in the training log, or None if there are none.
    Episodes without a step are skipped.

    Returns:
        ``step``; ``episodes``, the number of episodes; ``success``, ``score`` and ``turns``, averages;
        ``parse_errors``, the share of replies in scored episodes that failed to parse; ``faults``, the share
        of episodes that a fault ended.
    """
    steps: dict[int, list[EpisodeRecord]] = {}
    for record in records:
        if record.step is not None:
            steps.setdefault(record.step, []).append(record)
    columns: dict[str, list[Any]] = {
        name: [] for name in ("step", "episodes", "success", "score", "turns", "parse_errors", "faults")
    }
    for step, own in sorted(steps.items()):
        for name, value in {"step": step, **_figures(own)}.items():
            columns[name].append(value)
    return columns


def _figures(records: list[EpisodeRecord]) -> dict[str, Any]:
    scored = [record for record in records if record.scored]
    turns = sum(record.turns for record in scored)
    errors = sum(sum(record.parse_errors.values()) for record in scored)
    return {
        "episodes": len(records),
        "success": mean(float(record.success) for record in scored if record.success is not None),
        "score": mean(record.score for record in scored if record.score is not None),
        "turns": mean(record.turns for record in scored),
        "parse_errors": errors / turns if turns else None,
        "faults": 1 - len(scored) / len(records),
    }
