"""Advantages of tokens by the formulas of the papers, in numpy.

A batch has verl's names: `token_level_rewards`, `response_mask` and `values`, each episodes by tokens, and
`index` with the group of each episode.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

Batch = Mapping[str, Any]


def whitened(values: np.ndarray, mask: np.ndarray) -> np.ndarray:
    """Values less their mean over the tokens of a batch, by the deviation of a sample, as verl takes it."""
    among = values[mask]
    return (values - among.mean()) / np.sqrt(among.var(ddof=1) + 1e-8)


def to_come(rewards: np.ndarray, mask: np.ndarray, gamma: float, *, over_observations: bool) -> np.ndarray:
    """The discounted sum of the rewards from each of the model's tokens on.

    Args:
        rewards: Of each token.
        mask: Which are the model's.
        gamma: The discount for each of the model's tokens.
        over_observations: Whether a reward counts for replies before an observation too.
    """
    sums = np.zeros_like(rewards)
    for number, of_model in enumerate(mask):
        ahead = 0.0
        for place in reversed(range(len(of_model))):
            if of_model[place]:
                sums[number, place] = ahead = rewards[number, place] + gamma * ahead
            elif not over_observations:
                ahead = 0.0
    return sums


def groups(batch: Batch) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for place, group in enumerate(batch["index"]):
        found.setdefault(group, []).append(place)
    return found


def grpo(batch: Batch) -> np.ndarray:
    """A score less the mean of its group, by the group's deviation (arXiv 2402.03300)."""
    scores, result = batch["token_level_rewards"].sum(1), np.zeros(len(batch["index"]))
    for places in groups(batch).values():
        of_group = scores[places]
        result[places] = (of_group - of_group.mean()) / (of_group.std(ddof=1) + 1e-6)
    return result[:, None] * batch["response_mask"]


def rloo(batch: Batch) -> np.ndarray:
    """A score less the mean of the others of its group (arXiv 2402.14740)."""
    scores, result = batch["token_level_rewards"].sum(1), np.zeros(len(batch["index"]))
    for places in groups(batch).values():
        for place in places:
            result[place] = scores[place] - np.mean([scores[other] for other in places if other != place])
    return result[:, None] * batch["response_mask"]


def gae(batch: Batch, *, gamma: float, lam: float) -> np.ndarray:
    """Each error of the critic's, and those after it by powers of gamma and lambda (arXiv 1506.02438).

    Over the model's tokens alone, as if no observation stood between them; then verl whitens.
    """
    mask = batch["response_mask"].astype(bool)
    result = np.zeros_like(batch["values"])
    for number, of_model in enumerate(mask):
        rewards, values = batch["token_level_rewards"][number][of_model], batch["values"][number][of_model]
        errors = rewards + gamma * np.append(values[1:], 0.0) - values
        powers = (gamma * lam) ** np.arange(len(errors))
        result[number, of_model] = [errors[at:] @ powers[: len(errors) - at] for at in range(len(errors))]
    return whitened(result, mask)


def reinforce_plus_plus(batch: Batch, *, gamma: float, over_observations: bool = True) -> np.ndarray:
    """The rewards to come, less the mean and by the deviation of the whole batch (arXiv 2501.03262)."""
    mask = batch["response_mask"].astype(bool)
    sums = to_come(batch["token_level_rewards"], mask, gamma, over_observations=over_observations)
    return whitened(sums, mask) * mask


def remax(batch: Batch) -> np.ndarray:
    """The rewards to come less the score of the greedy episode (arXiv 2310.10505)."""
    mask = batch["response_mask"].astype(bool)
    sums = to_come(batch["token_level_rewards"], mask, 1.0, over_observations=True)
    return (sums - batch["reward_baselines"][:, None]) * mask


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
