"""95 % confidence intervals of a proportion and of a mean over tasks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import NormalDist
from typing import TypeAlias

import numpy as np

__all__ = ["LEVEL", "RESAMPLES", "Interval", "bootstrap", "share_interval", "wilson"]

Interval: TypeAlias = tuple[float, float] | None
"""The lower and the upper bound; None if the data does not determine them."""

_Floats: TypeAlias = np.ndarray[tuple[int, ...], np.dtype[np.float64]]

LEVEL = 0.95
"""The confidence level."""

RESAMPLES = 10_000
"""Number of bootstrap resamples of the tasks."""

_NORMAL = NormalDist()
_Z = _NORMAL.inv_cdf((1 + LEVEL) / 2)
_BLOCK = 1_000_000  # random numbers per batch: 8 MB
_SAME = 1e-12  # of the largest deviation: means that differ by less differ only by rounding


def wilson(successes: float, trials: int) -> Interval:
    """Return the Wilson interval of a proportion, or None if there are no trials.

    Unlike an interval from the standard error, it has a width even if all or no trials succeed.
    E. B. Wilson, "Probable inference, the law of succession, and statistical inference", Journal of the
    American Statistical Association 22 (1927), 209-212.

    Args:
        successes: Number of successful trials.
        trials: Number of trials.
    """
    if not trials:
        return None
    share, spread = successes / trials, _Z**2 / trials
    middle = (share + spread / 2) / (1 + spread)
    half = math.sqrt(share * (1 - share) * spread + spread**2 / 4) / (1 + spread)
    return max(0.0, middle - half), min(1.0, middle + half)


def share_interval(values: Sequence[float]) -> Interval:
    """Return the interval of the mean of proportions, one for each task, or None if there are no tasks.

    If every proportion is 0 or 1, as with one episode for each task, this is the Wilson interval. Otherwise
    it is the bootstrap interval over tasks. If all proportions are equal, the bootstrap would return an
    interval of width 0, so this is the Wilson interval with each task as one trial. That interval is
    conservative, because values between 0 and 1 with the mean p have a variance of at most p (1 - p).

    Args:
        values: A number from 0 to 1 for each task.
    """
    if all(value in {0.0, 1.0} for value in values) or min(values) == max(values):
        return wilson(math.fsum(values), len(values))
    return bootstrap(values)


def bootstrap(values: Sequence[float], *, resamples: int = RESAMPLES, seed: int = 0) -> Interval:
    """Return the bootstrap interval of a mean, bias-corrected and accelerated (BCa).

    The bootstrap resamples tasks with replacement, and a task's value is the mean of its episodes. Episodes
    of one task therefore need not be independent of each other. The order of the values makes no difference.
    B. Efron, "Better bootstrap confidence intervals", Journal of the American Statistical Association 82
    (1987), 171-185.

    Args:
        values: One value for each task.
        resamples: Number of resamples.
        seed: Seed of the random generator.

    Returns:
        The bounds; None if there are fewer than two values or all are equal, because such values carry no
        information about the variance.
    """
    ordered = np.sort(np.asarray(values, dtype=np.float64))
    if ordered.size < 2 or ordered[0] == ordered[-1]:  # noqa: PLR2004
        return None
    # The bootstrap commutes with linear maps of the values. With deviations scaled to at most 1, nothing
    # overflows or underflows.
    size = float(np.abs(ordered).max())
    scaled = ordered / size
    middle = float(scaled.mean())
    deviations = scaled - middle
    widest = float(np.abs(deviations).max())
    deviations /= widest
    means = np.sort(_resampled_means(deviations, resamples, np.random.default_rng(seed)))
    below, up_to = np.searchsorted(means, [-_SAME, _SAME])
    bias = _NORMAL.inv_cdf(float(below + up_to) / 2 / resamples)
    acceleration = float((deviations**3).sum() / (6 * (deviations**2).sum() ** 1.5))
    low, high = (
        float(np.quantile(means, _adjusted(each, bias, acceleration))) * widest + middle for each in (-_Z, _Z)
    )
    least, most = float(ordered[0]), float(ordered[-1])
    return max(least, low * size), min(most, high * size)


def _adjusted(z: float, bias: float, acceleration: float) -> float:
    """Return the quantile of the resampled means that is a BCa bound."""
    shifted = bias + z
    return _NORMAL.cdf(bias + shifted / (1 - acceleration * shifted))


def _resampled_means(ordered: _Floats, resamples: int, draws: np.random.Generator) -> _Floats:
    """Return the means of samples that are drawn from sorted values with replacement."""
    distinct, times = np.unique(ordered, return_counts=True)
    if 10 * distinct.size <= ordered.size:  # faster to draw the count of each value than indices
        drawn = draws.multinomial(ordered.size, times / ordered.size, size=resamples)
        return np.asarray(drawn @ distinct / ordered.size)
    rows = max(1, _BLOCK // ordered.size)
    means = [
        ordered[draws.integers(0, ordered.size, size=(min(rows, resamples - done), ordered.size))].mean(
            axis=1
        )
        for done in range(0, resamples, rows)
    ]
    return np.concatenate(means)
