"""Leave rows without a trained token out of verl's metrics of probabilities.

A faulted episode has an all-zero response mask, and so has padding. verl counts such a row as 0 in its means
over rows: with 7 of 32 rows faulted, a mean log perplexity of 4.16 becomes 3.25. :mod:`verl_bridge.trainer`
wraps verl's functions with this module. Each of them gets the other rows only, so its metrics are exactly
those of a batch without faults. The tensors that it returns have all rows, with zeros in the masked ones.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

__all__ = ["correct", "diagnose", "penalize_kl"]

Arguments = Mapping[str, Any]

_BY_ROW = ("old_log_prob", "rollout_log_prob", "response_mask")
"""Arguments of verl's functions with a row for each row of the batch. The second may be None."""


def diagnose(original: Callable[..., Any], arguments: Arguments) -> Any:
    """Call verl's ``compute_offpolicy_metrics`` without the masked rows.

    Returns:
        The metrics; None if no row is masked, or all are.
    """
    trained = _trained(arguments["response_mask"])
    return original(**_selected(arguments, trained)) if _some(trained) else None


def correct(original: Callable[..., Any], arguments: Arguments) -> Any:
    """Call verl's ``compute_rollout_correction_and_rejection_mask`` without the masked rows.

    verl raises an error for a batch without a trained token. With ``bypass_mode`` the actor calls it for each
    micro-batch, so that one with faulted episodes only would end the run: here its metrics are NaN.

    Returns:
        Weights, mask and metrics, as verl returns them; None if no row is masked.
    """
    trained = _trained(arguments["response_mask"])
    if trained.all():
        return None
    if trained.any():
        weights, mask, metrics = original(**_selected(arguments, trained))
    else:
        weights, mask, metrics = original(**_one_token(arguments))
        metrics = dict.fromkeys(metrics, math.nan)
    if weights is not None:
        weights = type(weights).from_dict(
            tensors={name: _with_all_rows(tensor, trained) for name, tensor in weights.batch.items()}
        )
    return weights, _with_all_rows(mask, trained), metrics


def penalize_kl(original: Callable[..., Any], arguments: Arguments) -> Any:
    """Call verl's ``apply_kl_penalty`` without the masked rows.

    An adaptive coefficient follows the mean that the function computes.

    Returns:
        The whole batch with its rewards, and the metrics; None if no row is masked, or all are.
    """
    data = arguments["data"]
    trained = _trained(data.batch["response_mask"])
    if not _some(trained):
        return None
    part, metrics = original(**{**arguments, "data": data.select_idxs(trained)})
    rewards = _with_all_rows(part.batch["token_level_rewards"], trained)
    rewards[~trained] = data.batch["token_level_scores"][~trained].to(rewards.dtype)
    data.batch["token_level_rewards"] = rewards
    return data, metrics


def _trained(mask: Any) -> Any:
    """Return for each row whether it has a trained token."""
    return mask.bool().any(dim=-1)


def _some(trained: Any) -> bool:
    return bool(trained.any()) and not bool(trained.all())


def _selected(arguments: Arguments, rows: Any) -> dict[str, Any]:
    """Return the arguments with these rows only."""
    by_row = {name: arguments[name][rows] for name in _BY_ROW if arguments.get(name) is not None}
    return {**arguments, **by_row}


def _one_token(arguments: Arguments) -> dict[str, Any]:
    """Return the arguments with one token of equal probabilities, from which verl computes the usual metrics.

    verl averages over micro-batches and processes, and requires the same metrics from all of them.
    """
    one = _selected(arguments, slice(1))
    mask = one["response_mask"].clone()
    mask[:, 0] = 1
    return {**one, "rollout_log_prob": one["old_log_prob"], "response_mask": mask}


def _with_all_rows(tensor: Any, rows: Any) -> Any:
    """Return a tensor of some rows with zeros for the others."""
    whole = tensor.new_zeros(len(rows), *tensor.shape[1:])
    if rows.any():
        whole[rows] = tensor
    return whole
