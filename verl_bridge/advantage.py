"""``algorithm.adv_estimator=gym_grpo``: verl's GRPO without the faulted episodes of each group.

:class:`verl_bridge.agent_loop.GymAgentLoop` gives a faulted episode an all-zero response mask and the score
0, so it has no gradient of its own. verl's own ``grpo`` still counts its 0 in the mean and the standard
deviation of its group. With scores 1, 1, 0 and a fault, the mean is 0.5 instead of 0.667. The standard
deviation remains 0.577. So the failed episode's advantage is -0.866 instead of -1.155, and the others' 0.866
instead of 0.577. The score of an episode cannot repair that, because it is set without the rest of its group.
This estimator removes the faulted episodes and then calls verl's own function. It uses verl's own registry
and no patch, from 0.7.1 to 0.9.1. If one episode is left in its group, there is nothing to compare it with,
so its advantage is 0; verl would use its score instead.

Name this module in ``VERL_USE_EXTERNAL_MODULES`` to register the estimator.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import torch
from verl.trainer.ppo.core_algos import compute_grpo_outcome_advantage, register_adv_est

__all__ = ["compute_gym_grpo_advantage"]


@register_adv_est("gym_grpo")
def compute_gym_grpo_advantage(
    token_level_rewards: torch.Tensor,
    response_mask: torch.Tensor,
    index: Any,
    config: Any = None,
    **_: Any,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Compute GRPO's advantages over the unfaulted episodes, and 0 for the faulted ones.

    Args:
        token_level_rewards: Rewards, batch by response length.
        response_mask: 1 for tokens of the model; all 0 marks a fault. The same shape.
        index: numpy array with the group of each episode.
        config: verl's section ``algorithm``; only ``norm_adv_by_std_in_grpo`` is read.
        **_: Further arguments that verl passes to estimators.

    Returns:
        Advantages and returns, which are the same, in the shape of the rewards.
    """
    played = response_mask.bool().any(dim=-1)
    advantages = torch.zeros_like(token_level_rewards)
    if played.any():
        by_std = True if config is None else config.get("norm_adv_by_std_in_grpo", True)
        groups = index[played.cpu().numpy()]
        advantages[played], _ = compute_grpo_outcome_advantage(
            token_level_rewards[played],
            response_mask[played],
            groups,
            norm_adv_by_std_in_grpo=by_std,
        )
        left, before = Counter(groups.tolist()), Counter(index.tolist())
        alone = [left[group] == 1 < before[group] for group in index.tolist()]
        advantages[torch.tensor(alone, device=advantages.device)] = 0
    return advantages, advantages
