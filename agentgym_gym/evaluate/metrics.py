"""Metrics over the episodes of a run."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from statistics import NormalDist, fmean
from typing import TYPE_CHECKING, Any

from agentgym_gym._http.limits import Stats

if TYPE_CHECKING:
    from agentgym_gym.evaluate.records import EpisodeRecord

__all__ = ["Summary", "counted", "summarise", "wilson"]


@dataclass(frozen=True)
class Summary:
    """Counts and averages over episodes. An average over nothing is None, never 0.

    Attributes:
        episodes: How many there are.
        scored: How many of them no fault ended. All averages are over these.
        faults: How many episodes ended by a fault, by its kind.
        mean_score: Mean final score.
        success_rate: Share of tasks solved, among the episodes of which the environment says it.
        success_interval: Least and greatest rate that the episodes leave likely: Wilson's interval at 95 %.
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
    success_interval: tuple[float, float] | None
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
    scored = [record for record in records if record.scored]
    successes = [float(record.success) for record in scored if record.success is not None]
    turns = sum(record.turns for record in scored)
    unread = sum(sum(record.parse_errors.values()) for record in scored)
    return Summary(
        episodes=len(records),
        scored=len(scored),
        faults=dict(sorted(Counter(r.fault["kind"] for r in records if r.fault is not None).items())),
        mean_score=_mean([record.score or 0.0 for record in scored]),
        success_rate=_mean(successes),
        success_interval=wilson(sum(successes), len(successes)),
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


def wilson(successes: float, trials: int) -> tuple[float, float] | None:
    """Return the 95 % interval of a share, None of no trials.

    Unlike a standard error it is not empty where all or none succeed. E. B. Wilson, "Probable inference, the
    law of succession, and statistical inference", Journal of the American Statistical Association 22 (1927),
    209-212.

    Args:
        successes: How many of them succeeded.
        trials: How many there are.
    """
    if not trials:
        return None
    share, spread = successes / trials, _Z**2 / trials
    middle = (share + spread / 2) / (1 + spread)
    half = math.sqrt(share * (1 - share) * spread + spread**2 / 4) / (1 + spread)
    return max(0.0, middle - half), min(1.0, middle + half)


_Z = NormalDist().inv_cdf(0.975)
