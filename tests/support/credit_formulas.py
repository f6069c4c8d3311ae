"""GiGPO's advantages of tokens by the formulas of its paper, arXiv 2505.10978, in numpy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np


def gigpo(
    rewards: np.ndarray,
    mask: np.ndarray,
    groups: Sequence[Any],
    turns: Sequence[Any],
    *,
    gamma: float,
    omega: float,
    by_std: bool,
) -> np.ndarray:
    """Equations 3, 6, 7 and 8; the only episode of a group has its score as its advantage.

    A turn's penalty lowers the score and the return of this turn only; each episode counts once in its group.
    """
    scores, result = rewards.sum(axis=1), np.zeros_like(rewards)
    visits = []  # group, state, discounted return
    for group, own in zip(groups, turns, strict=True):
        for at in range(len(own["rewards"])):
            ahead = np.array(own["rewards"][at:])
            value = (ahead * gamma ** np.arange(len(ahead))).sum() - own["penalties"][at]
            visits.append((group, own["states"][at], value))
    number = 0
    for row, own in enumerate(turns):
        of_group = [other for other, group in enumerate(groups) if group == groups[row]]
        lowered = [scores[other] - np.array(turns[other]["penalties"]) for other in of_group]
        mean = np.mean([each.mean() for each in lowered])
        spread = np.sqrt(sum(((each - mean) ** 2).mean() for each in lowered) / max(len(of_group) - 1, 1))
        for at, (start, end) in enumerate(zip(own["starts"], own["ends"], strict=True)):
            whole = scores[row] - own["penalties"][at]
            if len(of_group) > 1:
                whole = (whole - mean) / (spread + 1e-6 if by_std else 1.0)
            result[row, start:end] = whole
            group, state, value = visits[number]
            anchor = np.array([other for *at, other in visits if at == [group, state]])
            if len(anchor) > 1:
                result[row, start:end] += omega * relative(value, anchor, by_std=by_std)
            number += 1
    return result * mask


def turn_gae(
    rewards: np.ndarray, values: np.ndarray, turns: Sequence[Any], *, gamma: float, lam: float
) -> tuple[np.ndarray, np.ndarray]:
    """Return whitened advantages and returns of turns, each the sum of the later errors (arXiv 1506.02438).

    The rewards of a turn are those of its own tokens; an episode without a record has no turns.
    """
    found, result, returns = [], np.zeros_like(rewards), np.zeros_like(rewards)
    for row, own in enumerate(turns):
        if own is None:
            continue
        spans = [*zip(own["starts"], own["ends"], strict=True)]
        now = np.array([values[row, start] for start, _ in spans])
        paid = np.array([rewards[row, start:end].sum() for start, end in spans])
        errors = paid + gamma * np.append(now[1:], 0.0) - now
        for at, (start, end) in enumerate(spans):
            value = sum((gamma * lam) ** (k - at) * errors[k] for k in range(at, len(errors)))
            found.append((row, start, end, value))
            returns[row, start:end] = value + now[at]
    every = np.array([value for *_, value in found])
    for row, start, end, value in found:
        result[row, start:end] = (value - every.mean()) / np.sqrt(every.var(ddof=1) + 1e-8)
    return result, returns


def relative(value: float, among: np.ndarray, *, by_std: bool) -> float:
    return (value - among.mean()) / (among.std(ddof=1) + 1e-6 if by_std else 1.0)
