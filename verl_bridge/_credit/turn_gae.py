"""Compute generalized advantage estimation (GAE) over turns, with one value for each; needs no verl.

A turn is one step of a Markov decision process: its state is the prompt, its action the whole reply. With the
critic's value ``V_t`` of the prompt and the reward ``r_t``::

    delta_t = r_t + gamma * V_{t+1} - V_t
    A_t     = delta_t + gamma * lam * A_{t+1}

The value after the last turn is 0. Discount and lambda count turns, not tokens. This is the formulation of
Turn-PPO (Li et al., arXiv 2512.17008), and of the ``rl4vlm`` estimator in VAGEN's code. RAGEN and VAGEN also
have an estimator with a second pass over the tokens of a turn (bi-level GAE), which this module has not.

Advantages are whitened over turns: the mean and the deviation are over all turns of a batch, each of which
counts once. verl whitens over tokens, so that long replies would decide what an average turn is, although all
tokens of a turn have the same advantage.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

__all__ = ["advantages", "whitened"]

_EPSILON = 1e-8
"""Added to the variance, as in verl."""


def advantages(rewards: Sequence[float], values: Sequence[float], *, gamma: float, lam: float) -> list[float]:
    """Return the advantage of each turn of an episode.

    Args:
        rewards: Rewards of the turns.
        values: Values of the states in which they began.
        gamma: Discount of one turn.
        lam: GAE's lambda of one turn.
    """
    result, ahead, following = [], 0.0, 0.0
    for reward, value in zip(reversed(rewards), reversed(values), strict=True):
        ahead = reward + gamma * following - value + gamma * lam * ahead
        following = value
        result.append(ahead)
    return result[::-1]


def whitened(episodes: Sequence[Sequence[float]]) -> list[list[float]]:
    """Return the advantages less their mean, divided by their sample deviation; 0 for a single turn.

    Args:
        episodes: The advantages of the turns of each episode.
    """
    turns = [value for own in episodes for value in own]
    count = max(len(turns), 1)
    mean = math.fsum(turns) / count
    variance = math.fsum((value - mean) ** 2 for value in turns) / max(count - 1, 1)
    scale = math.sqrt(variance + _EPSILON)
    return [[(value - mean) / scale for value in own] for own in episodes]
