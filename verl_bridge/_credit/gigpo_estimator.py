"""Register GiGPO with verl, as ``algorithm.adv_estimator=gym_gigpo``, when it is imported."""

from __future__ import annotations

from typing import Any

import torch
from verl.trainer.ppo.core_algos import register_adv_est

from verl_bridge._credit import gigpo
from verl_bridge._credit.estimators import GIGPO, OMEGA
from verl_bridge._credit.passed_turns import number_of, played_turns

__all__ = ["gym_gigpo"]


@register_adv_est(GIGPO)  # type: ignore[untyped-decorator]
def gym_gigpo(
    token_level_rewards: torch.Tensor, response_mask: torch.Tensor, *, config: Any, index: Any, **_: Any
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return GiGPO's advantages, see :mod:`verl_bridge._credit.gigpo`. verl calls this.

    They are computed in float64. The score of an episode is the sum of its tokens' rewards, with verl's KL
    term if there is one; the returns of its turns are sums of the environment's rewards.

    Args:
        token_level_rewards: Batch by response length.
        response_mask: The same shape; 1 for the model's tokens.
        config: The settings below ``algorithm``: ``gamma`` and ``gym_gigpo_omega``, which are 1 if they are
            null, and ``norm_adv_by_std_in_grpo``.
        index: The group of each episode.

    Returns:
        Advantages and returns, which are the same: at each token of a reply the sum of the advantages of its
        episode and its turn. A row of verl's padding, without a token of the model, has 0.

    Raises:
        ValueError: An episode has no record of its turns, or the discount or the weight is not a number.
    """
    played = played_turns(GIGPO, response_mask)
    gamma, omega = number_of(config, "gamma"), number_of(config, OMEGA)
    scores = token_level_rewards.double().sum(dim=-1).tolist()
    by_episode, by_turn = gigpo.advantages(
        [scores[row] for row in played],
        [index[row] for row in played],
        [record["rewards"] for record in played.values()],
        [record["states"] for record in played.values()],
        [record["penalties"] for record in played.values()],
        gamma=gamma,
        by_std=bool(config.get("norm_adv_by_std_in_grpo", True)),
    )
    result = torch.zeros_like(token_level_rewards, dtype=torch.float64)
    for (row, record), *values in zip(played.items(), by_episode, by_turn, strict=True):
        for start, end, episode, step in zip(record["starts"], record["ends"], *values, strict=True):
            result[row, start:end] = episode + omega * step
    result = (result * response_mask.bool()).to(token_level_rewards.dtype)
    return result, result.clone()
