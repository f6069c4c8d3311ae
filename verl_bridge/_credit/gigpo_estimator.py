"""Register GiGPO with verl, as ``algorithm.adv_estimator=gym_gigpo``, when it is imported.

verl passes the rewards of tokens to an estimator, and no turns. They come by :func:`pass_turns`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

import torch
from verl.trainer.ppo.core_algos import register_adv_est

from verl_bridge._credit import gigpo
from verl_bridge._credit.estimators import GIGPO, OMEGA, number_error

if TYPE_CHECKING:
    from verl_bridge._credit.turn_rewards import TurnRecord

__all__ = ["gym_gigpo", "pass_turns"]

_turns: ContextVar[Sequence[TurnRecord | None]] = ContextVar("_turns", default=())


@contextlib.contextmanager
def pass_turns(turns: Sequence[TurnRecord | None]) -> Iterator[None]:
    """Pass the turns of each episode of a batch to the estimator that verl calls meanwhile."""
    token = _turns.set(turns)
    try:
        yield
    finally:
        _turns.reset(token)


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
    turns, mask = _turns.get(), response_mask.bool()
    played = [row for row, record in enumerate(turns) if record is not None]
    if {*torch.nonzero(mask.any(dim=-1)).flatten().tolist()} - {*played}:
        raise ValueError(
            f"{GIGPO} needs the turns of each episode: play them with the agent loop "
            "verl_bridge.agent_loop.GymAgentLoop, without drop_reasoning, and load verl_bridge.trainer by "
            "VERL_USE_EXTERNAL_MODULES"
        )
    gamma, omega = _number(config, "gamma"), _number(config, OMEGA)
    records = [record for record in turns if record is not None]
    scores = token_level_rewards.double().sum(dim=-1).tolist()
    by_episode, by_turn = gigpo.advantages(
        [scores[row] for row in played],
        [index[row] for row in played],
        [record["rewards"] for record in records],
        [record["states"] for record in records],
        gamma=gamma,
        by_std=bool(config.get("norm_adv_by_std_in_grpo", True)),
    )
    result = torch.zeros_like(token_level_rewards, dtype=torch.float64)
    for row, record, episode, steps in zip(played, records, by_episode, by_turn, strict=True):
        result[row] = episode
        for start, end, step in zip(record["starts"], record["ends"], steps, strict=True):
            result[row, start:end] += omega * step
    result = (result * mask).to(token_level_rewards.dtype)
    return result, result.clone()


def _number(config: Any, name: str) -> float:
    value = config.get(name)
    value = 1.0 if value is None else value
    if error := number_error(name, value):
        raise ValueError(error)
    return float(value)
