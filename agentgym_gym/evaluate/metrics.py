"""Metrics over the episodes of a run."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from statistics import fmean
from typing import TYPE_CHECKING, Any

from agentgym_gym._http.limits import Stats

if TYPE_CHECKING:
    from agentgym_gym.evaluate.records import EpisodeRecord

__all__ = ["Summary", "counted", "summarise"]


@dataclass(frozen=True)
class Summary:
    """Counts and averages over episodes. An average over nothing is None, never 0.

    Attributes:
        episodes: How many there are.
        scored: How many of them no fault ended. All averages are over these.
        faults: How many episodes ended by a fault, by its kind.
        mean_score: Mean final score.
        success_rate: Share of tasks solved.
        success_stderr: Standard error of that share, by the sample variance; None below two episodes.
        mean_turns: Mean number of turns.
        parse_error_share: Share of parse errors among all replies.
        seconds: Wall-clock seconds spent in all episodes, those with a fault too.
        counters: What `counted` says of the episodes.
    """

    episodes: int
    scored: int
    faults: Mapping[str, int]
    mean_score: float | None
    success_rate: float | None
    success_stderr: float | None
    mean_turns: float | None
    parse_error_share: float | None
    seconds: float
    counters: Mapping[str, Any]

    @property
    def faulted(self) -> int:
        """How many episodes a fault ended."""
        return self.episodes - self.scored

    def to_json(self) -> dict[str, Any]:
        """Return a JSON object."""
        return asdict(self)


def summarise(records: Iterable[EpisodeRecord]) -> Summary:
    """Count and average over episodes."""
    records = list(records)
    scored = [record for record in records if record.fault is None]
    successes = [float(record.success or False) for record in scored]
    turns = sum(record.turns for record in scored)
    unread = sum(sum(record.parse_errors.values()) for record in scored)
    return Summary(
        episodes=len(records),
        scored=len(scored),
        faults=dict(sorted(Counter(r.fault["kind"] for r in records if r.fault is not None).items())),
        mean_score=_mean([record.score or 0.0 for record in scored]),
        success_rate=_mean(successes),
        success_stderr=_stderr(successes),
        mean_turns=_mean([float(record.turns) for record in scored]),
        parse_error_share=unread / turns if turns else None,
        seconds=math.fsum(record.seconds for record in records),
        counters=counted(records),
    )


def counted(records: Iterable[EpisodeRecord]) -> dict[str, Any]:
    """Return the sum of the episodes' counters, and how many episodes have none."""
    total, each = Stats(), [record.counters for record in records]
    for counters in each:
        total.add(Stats.of(counters or {}))
    return {"episodes": len(each), "uncounted": each.count(None), **total.as_dict()}


def _mean(values: list[float]) -> float | None:
    return fmean(values) if values else None


def _stderr(values: list[float]) -> float | None:
    """Return the standard error of the mean of a sample."""
    count = len(values)
    if count < 2:  # noqa: PLR2004 - one value has no spread
        return None
    mean = fmean(values)
    return math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (count - 1) / count)
