"""Compute verl's advantages without the faulted episodes of each group, with any of its estimators.

:class:`verl_bridge.agent_loop.GymAgentLoop` gives a faulted episode an all-zero response mask and the score
0, so it contributes no gradient. verl still counts its 0 in the mean and the standard deviation of its
group. With scores 1, 1, 0 and a fault, the mean is 0.5 instead of 0.667, and the standard deviation remains
0.577. The failed episode's advantage becomes -0.866 instead of -1.155, and the others' 0.866 instead of
0.577. The score of an episode cannot repair that, because it is set without the rest of its group.

:mod:`verl_bridge.trainer`, which every recipe names, therefore passes only the other episodes to verl's
``compute_advantage``, for every estimator. Three kinds of episodes are left out:

- Faulted episodes.
- In an estimator that compares the episodes of a group: the last episode that is left of its group. There is
  nothing to compare it with, and verl would use its score as its advantage.
- In ReMax: an episode whose greedy baseline episode faulted.

Their advantages are 0. Without faults, verl's function gets what it always gets.

Before that, the rewards of episodes with ``turn_rewards`` are moved to the ends of their turns
(:func:`place_turn_rewards`), except for an estimator that sums the rewards of an episode. The sum is rounded,
so episodes of equal scores would differ in the last digit, and dividing by a near-zero deviation would turn
rounding noise into advantages near 1.

The penalties of turns are subtracted from these rewards, for the estimator only
(:func:`penalized_rewards`).
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch

from verl_bridge._credit.estimators import GIGPO, GROUPED, SUMMING
from verl_bridge._credit.passed_turns import pass_turns
from verl_bridge._credit.turn_rewards import COLUMN, TurnRecord

__all__ = ["compute_without_faults", "penalized_rewards", "place_turn_rewards"]


def compute_without_faults(
    compute: Callable[..., Any], arguments: Mapping[str, Any], faulted: Sequence[bool]
) -> tuple[Any, int]:
    """Compute advantages with verl, from the episodes that were played.

    Args:
        compute: verl's ``compute_advantage``.
        arguments: Its arguments by name, among them ``data``, a ``DataProto`` of some episodes, and
            ``adv_estimator``.
        faulted: For each episode of ``data``, whether it faulted.

    Returns:
        ``data`` with ``advantages`` and ``returns``, batch by response length; and the number of groups in
        which one episode or none was left to be compared.
    """
    data = arguments["data"]
    estimator = str(getattr(arguments["adv_estimator"], "value", arguments["adv_estimator"]))
    if estimator not in SUMMING:
        place_turn_rewards(data)
    left_out = np.array(faulted, dtype=bool) | _without_baseline(data)
    # GiGPO subtracts the penalties itself: a turn's penalty is in none of the returns before it.
    penalized = None if estimator == GIGPO else penalized_rewards(data, by_turn=estimator not in SUMMING)
    if not left_out.any() and penalized is None:
        return _compute(compute, arguments), 0
    without_partner, groups = (
        _without_partner(data.non_tensor_batch["uid"], left_out) if estimator in GROUPED else (False, 0)
    )
    kept = np.flatnonzero(~(left_out | without_partner))
    if len(kept):
        part = data.select_idxs(kept)
        if penalized is not None:
            part.batch["token_level_rewards"] = penalized[torch.from_numpy(kept).to(penalized.device)]
        before = dict(part.batch.items())
        result = _compute(compute, {**arguments, "data": part})
        made = {name: tensor for name, tensor in result.batch.items() if tensor is not before.get(name)}
        _put_back(data, made, torch.from_numpy(kept))
    else:
        nothing = torch.zeros_like(data.batch["token_level_rewards"])
        data.batch["advantages"], data.batch["returns"] = nothing, nothing.clone()
    return data, groups


def place_turn_rewards(data: Any) -> None:
    """Move the reward of each turn from the end of its episode to the last token of the turn.

    Only episodes whose record of turns requires it are changed. Of their ``token_level_rewards`` the KL term
    stays at its tokens. The last turn gets what is left of the score, so that the sum stays the score, up to
    the rounding of that one number. ``token_level_scores``, from which verl computes its metrics, stays.

    Args:
        data: A ``DataProto``, whose ``token_level_rewards`` are replaced, batch by response length.
    """
    # A turn without a token has no place; its reward is a part of what is left.
    records = [_nonempty(record) if record and record["place"] else [] for record in _turns_of(data)]
    if not any(records):
        return
    rewards, scores = data.batch["token_level_rewards"], data.batch["token_level_scores"]
    placed = rewards.clone()  # without a KL term, the scores are the same tensor
    for row, turns in enumerate(records):
        if not turns:
            continue
        exact = rewards[row].double() - scores[row].double()
        left = scores[row].double().sum()
        for end, reward in turns[:-1]:
            rounded = torch.tensor(reward, dtype=rewards.dtype, device=rewards.device).double()
            exact[end - 1] += rounded
            left -= rounded
        exact[turns[-1][0] - 1] += left
        placed[row] = exact.to(rewards.dtype)
    data.batch["token_level_rewards"] = placed


def penalized_rewards(data: Any, *, by_turn: bool) -> torch.Tensor | None:
    """Return the rewards of tokens less the penalties of turns, batch by response length.

    ``data`` stays as it is, and with it verl's metrics of scores and rewards.

    Args:
        data: A ``DataProto``.
        by_turn: Whether each penalty is at the last token of its turn. Otherwise their sum is at the last
            token of the episode, so that episodes of equal scores and penalties have exactly equal sums.

    Returns:
        The rewards; None if no turn has a penalty.
    """
    records = [record if record and any(record["penalties"]) else None for record in _turns_of(data)]
    if not any(records):
        return None
    rewards: torch.Tensor = data.batch["token_level_rewards"].clone()
    for row, record in enumerate(records):
        if record is None:
            continue
        last, of_token = max(record["ends"]), defaultdict(list)
        for start, end, penalty in zip(record["starts"], record["ends"], record["penalties"], strict=True):
            of_token[end if by_turn and end > start else last].append(penalty)
        for end, penalties in of_token.items():
            rewards[row, end - 1] = float(rewards[row, end - 1]) - math.fsum(penalties)
    return rewards


def _turns_of(data: Any) -> Sequence[TurnRecord | None]:
    return list(data.non_tensor_batch.get(COLUMN, ()))


def _nonempty(record: TurnRecord) -> list[tuple[int, float]]:
    """Return the end and the reward of each turn that has tokens."""
    turns = zip(record["starts"], record["ends"], record["rewards"], strict=True)
    return [(end, reward) for start, end, reward in turns if end > start]


def _compute(compute: Callable[..., Any], arguments: Mapping[str, Any]) -> Any:
    with pass_turns(arguments["data"]):
        return compute(**arguments)


def _without_baseline(data: Any) -> Any:
    """Return for each episode whether its baseline in ReMax faulted, which the agent loop scores as NaN."""
    if "reward_baselines" not in data.batch:
        return np.zeros(len(data), dtype=bool)
    return data.batch["reward_baselines"].isnan().cpu().numpy()


def _without_partner(groups: Any, left_out: Any) -> tuple[Any, int]:
    """Return for each episode whether all others of its group are left out, and the number of groups lost."""
    before, left = Counter(groups.tolist()), Counter(groups[~left_out].tolist())
    lost = {group for group, size in before.items() if left[group] < min(size, 2)}
    without_partner = [group in lost for group in groups.tolist()]
    return np.array(without_partner, dtype=bool), len(lost)


def _put_back(data: Any, made: Mapping[str, torch.Tensor], kept: torch.Tensor) -> None:
    """Write the tensors of some episodes into the whole batch, with zeros for the others."""
    for name, tensor in made.items():
        old = data.batch.get(name, None)
        whole = tensor.new_zeros(len(data), *tensor.shape[1:]) if old is None else old.clone()
        whole[kept.to(whole.device)] = tensor
        data.batch[name] = whole
