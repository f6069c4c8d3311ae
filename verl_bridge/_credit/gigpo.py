"""Compute GiGPO's advantages (Feng et al., arXiv 2505.10978), from episodes and their turns; needs no verl.

The advantage of a turn is the sum of two, ``A = A_E + omega * A_S`` (equation 8 of the paper):

- ``A_E`` compares episodes of a group, which played the same task (equation 3). It is
  ``(R_i - mean(R)) / F(R)``, where ``R_i`` is the score of the episode and ``R`` the scores of its group.
- ``A_S`` compares turns (equations 6 and 7). The *anchor group* of a turn is all turns that began in the same
  state, in all episodes of the group; one episode may have several of them. With the discounted return of a
  turn, ``G_t = r_t + gamma * G_{t+1}``, it is ``(G_t - mean(G)) / F(G)`` over the anchor group.

``F`` is the standard deviation or 1. The discount counts turns, not tokens.

The paper leaves some details open, and in one the authors' code (verl-agent) differs from it:

- The deviation is the sample deviation, and 1e-6 is added to it, as in verl-agent and in verl's GRPO.
- The paper compares each episode once. verl-agent does that if ``compute_mean_std_cross_steps`` is false; by
  default it counts an episode once for each of its turns. This module follows the paper.
- A turn without another one of the same state has ``A_S = 0``.
- The penalty of a turn is in no equation. As in verl-agent, it lowers the score and the return of its own
  turn, and not of the turns before. The mean and the deviation of a group then go over the turns' scores, of
  which each episode's together count once; verl-agent takes the turn of each episode that comes first in
  its shuffled batch.
- The only episode of a group has its score as ``A_E``, as in verl-agent and in verl's GRPO; the
  formula would give 0. With ``omega = 0``, the result is verl's GRPO.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Hashable, Sequence

__all__ = ["EPSILON", "advantages", "discounted"]

EPSILON = 1e-6
"""Added to the deviation of a group."""


def advantages(
    scores: Sequence[float],
    groups: Sequence[Hashable],
    rewards: Sequence[Sequence[float]],
    states: Sequence[Sequence[Hashable]],
    penalties: Sequence[Sequence[float]] | None = None,
    *,
    gamma: float,
    by_std: bool,
) -> tuple[list[list[float]], list[list[float]]]:
    """Return both advantages of each turn.

    Args:
        scores: Score of each episode.
        groups: Group of each episode.
        rewards: Rewards of the turns of each episode.
        states: The states in which they began.
        penalties: Their penalties; None for none.
        gamma: Discount of one turn.
        by_std: Whether ``F`` is the standard deviation; otherwise it is 1.

    Returns:
        ``A_E`` and ``A_S`` of each turn of each episode.
    """
    of_group, of_state = defaultdict(list), defaultdict(list)
    penalties = [[0.0] * len(own) for own in rewards] if penalties is None else penalties
    returns = [
        [value - penalty for value, penalty in zip(discounted(own, gamma), lost, strict=True)]
        for own, lost in zip(rewards, penalties, strict=True)
    ]
    for episode, group in enumerate(groups):
        of_group[group].append(episode)
        for turn, state in enumerate(states[episode]):
            of_state[group, state].append((episode, turn))
    by_episode = [
        [score - penalty for penalty in lost] for score, lost in zip(scores, penalties, strict=True)
    ]
    by_turn = [[0.0] * len(own) for own in rewards]
    for episodes in of_group.values():
        if len(episodes) > 1:
            own_scores, lost = [scores[one] for one in episodes], [penalties[one] for one in episodes]
            for episode, own in zip(episodes, _relative_turns(own_scores, lost, by_std=by_std), strict=True):
                by_episode[episode] = own
    for turns in of_state.values():
        if len(turns) > 1:
            values = _relative([returns[episode][turn] for episode, turn in turns], by_std=by_std)
            for (episode, turn), value in zip(turns, values, strict=True):
                by_turn[episode][turn] = value
    return by_episode, by_turn


def discounted(rewards: Sequence[float], gamma: float) -> list[float]:
    """Return the discounted sum of the rewards from each turn on."""
    sums, ahead = [], 0.0
    for reward in reversed(rewards):
        ahead = reward + gamma * ahead
        sums.append(ahead)
    return sums[::-1]


def _relative_turns(
    scores: Sequence[float], penalties: Sequence[Sequence[float]], *, by_std: bool
) -> list[list[float]]:
    """Return the difference of each turn's score from the mean of its group, divided by ``F``.

    A turn's score is its episode's less its own penalty. Each of two or more episodes counts once.
    """
    count = len(scores)
    means = [math.fsum(lost) / len(lost) if lost else 0.0 for lost in penalties]
    mean = math.fsum(scores) / count - math.fsum(means) / count
    scale = 1.0
    if by_std:
        squares = [
            math.fsum((score - lost - mean) ** 2 for lost in own) / len(own) if own else (score - mean) ** 2
            for score, own in zip(scores, penalties, strict=True)
        ]
        scale = math.sqrt(math.fsum(squares) / (count - 1)) + EPSILON
    return [
        [(score - lost - mean) / scale for lost in own] for score, own in zip(scores, penalties, strict=True)
    ]


def _relative(values: Sequence[float], *, by_std: bool) -> list[float]:
    """Return the difference of each of two or more values from their mean, divided by ``F``."""
    mean = math.fsum(values) / len(values)
    scale = 1.0
    if by_std:
        variance = math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1)
        scale = math.sqrt(variance) + EPSILON
    return [(value - mean) / scale for value in values]
