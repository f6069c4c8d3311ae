"""Register GAE over turns with verl, as ``algorithm.adv_estimator=gym_turn_gae``, when it is imported."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import torch
from verl.trainer.ppo.core_algos import register_adv_est

from verl_bridge._credit import turn_gae
from verl_bridge._credit.estimators import TURN_GAE
from verl_bridge._credit.passed_turns import number_of, passed_values, played_turns

__all__ = ["gym_turn_gae"]


@register_adv_est(TURN_GAE)  # type: ignore[untyped-decorator]
def gym_turn_gae(
    token_level_rewards: torch.Tensor, response_mask: torch.Tensor, *, config: Any, **_: Any
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the advantages of GAE over turns, see :mod:`verl_bridge._credit.turn_gae`. verl calls this.

    They are computed in float64. The value of a turn is the critic's at the first token of its reply, which
    verl's critic computes from the prompt. The reward of a turn is the sum of the rewards of the tokens from
    this one to the next turn, with verl's KL term if there is one.

    Args:
        token_level_rewards: Batch by response length.
        response_mask: The same shape; 1 for the model's tokens.
        config: The settings below ``algorithm``: ``gamma`` and ``lam``, which are 1 if they are null.

    Returns:
        Advantages, which are whitened over turns, and returns for the critic, which are not: the sum of the
        advantage and the value of a turn. Both are the same at all tokens of a reply.

    Raises:
        ValueError: An episode has no record of its turns, there is no critic, or the discount or lambda is
            not a number.
    """
    played, values = played_turns(TURN_GAE, response_mask), passed_values(TURN_GAE)
    rewards = token_level_rewards.double()
    gamma, lam = number_of(config, "gamma"), number_of(config, "lam")
    # A turn without a token has no value: it is a part of the turn before.
    turns = {
        row: [span for span in zip(record["starts"], record["ends"], strict=True) if span[0] < span[1]]
        for row, record in played.items()
    }
    baselines = [[float(values[row, start]) for start, _ in spans] for row, spans in turns.items()]
    raw = [
        turn_gae.advantages(_rewards_of(rewards[row], spans), baseline, gamma=gamma, lam=lam)
        for (row, spans), baseline in zip(turns.items(), baselines, strict=True)
    ]
    advantages, returns = torch.zeros_like(rewards), torch.zeros_like(rewards)
    for (row, spans), *numbers in zip(turns.items(), turn_gae.whitened(raw), raw, baselines, strict=True):
        for (start, end), whitened, advantage, value in zip(spans, *numbers, strict=True):
            advantages[row, start:end] = whitened
            returns[row, start:end] = advantage + value
    mask, kind = response_mask.bool(), token_level_rewards.dtype
    return (advantages * mask).to(kind), (returns * mask).to(kind)


def _rewards_of(tokens: torch.Tensor, spans: Sequence[tuple[int, int]]) -> list[float]:
    """Return the sum of the rewards of the tokens from each turn to the next one."""
    bounds = [0, *(start for start, _ in spans[1:]), len(tokens)]
    return [float(tokens[first:last].sum()) for first, last in itertools.pairwise(bounds) if spans]
