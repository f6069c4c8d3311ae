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
    """Equations 3, 6, 7 and 8; the only episode of a group has its score as its advantage."""
    scores, result = rewards.sum(axis=1), np.zeros_like(rewards)
    visits = []  # group, state, discounted return
    for group, own in zip(groups, turns, strict=True):
        for at in range(len(own["rewards"])):
            ahead = np.array(own["rewards"][at:])
            visits.append((group, own["states"][at], (ahead * gamma ** np.arange(len(ahead))).sum()))
    number = 0
    for row, own in enumerate(turns):
        of_group = scores[[other == groups[row] for other in groups]]
        whole = relative(scores[row], of_group, by_std=by_std) if len(of_group) > 1 else scores[row]
        result[row] = whole
        for start, end in zip(own["starts"], own["ends"], strict=True):
            group, state, value = visits[number]
            anchor = np.array([other for *at, other in visits if at == [group, state]])
            if len(anchor) > 1:
                result[row, start:end] += omega * relative(value, anchor, by_std=by_std)
            number += 1
    return result * mask


def relative(value: float, among: np.ndarray, *, by_std: bool) -> float:
    return (value - among.mean()) / (among.std(ddof=1) + 1e-6 if by_std else 1.0)
