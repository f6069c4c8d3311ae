"""Faulted episodes are in none of verl's metrics of probabilities: numbers, with verl's own functions."""

from __future__ import annotations

import importlib
import math
import warnings

import numpy as np
import pytest

import needs

pytest.importorskip("verl", reason=needs.reason("verl"))

import torch
from omegaconf import OmegaConf
from verl import DataProto

from verl_bridge import trainer

trainer.install()
with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # what verl and Ray warn of then is not ours to mend
    helper = importlib.import_module("verl.trainer.ppo.rollout_corr_helper")
    ray_trainer = importlib.import_module("verl.trainer.ppo.ray_trainer")
    algorithms = importlib.import_module("verl.trainer.ppo.core_algos")

ROWS, FAULTED, LENGTH = 32, 7, 9

CORRECTIONS = {
    "none": {},
    "tokens": {"rollout_is": "token"},
    "sequences": {"rollout_is": "sequence"},
    "normalized": {"rollout_is": "sequence", "rollout_is_batch_normalize": True},
    "rejected": {"rollout_rs": "seq_mean_k1,token_k2", "rollout_rs_threshold": "0.8_1.2,0.05"},
    "both": {"rollout_is": "token", "rollout_rs": "seq_max_k3", "rollout_rs_threshold": 0.05},
}


def batch_of(seed: int = 0) -> tuple[DataProto, torch.Tensor]:
    """Return a batch with observations, padding and faulted episodes, and which rows were played."""
    draw = torch.Generator().manual_seed(seed)
    mask = torch.ones(ROWS, LENGTH)
    mask[:, 3] = 0  # an observation
    for row in range(ROWS):
        mask[row, 5 + row % 5 :] = 0
    played = torch.ones(ROWS, dtype=torch.bool)
    played[torch.randperm(ROWS, generator=draw)[:FAULTED]] = False
    mask[~played] = 0
    engine = -3 * torch.rand(ROWS, LENGTH, generator=draw)
    scores = torch.zeros(ROWS, LENGTH)
    scores[:, 4] = torch.rand(ROWS, generator=draw) * played
    tensors = {
        "response_mask": mask,
        "rollout_log_probs": engine,
        "old_log_probs": engine + 0.3 * torch.randn(ROWS, LENGTH, generator=draw),
        "ref_log_prob": engine + 0.3 * torch.randn(ROWS, LENGTH, generator=draw),
        "token_level_scores": scores,
    }
    uids = np.array([str(row // 4) for row in range(ROWS)], dtype=object)
    return DataProto.from_dict(tensors=tensors, non_tensors={"uid": uids}), played


def corrected(batch: DataProto, **settings: object) -> tuple[DataProto, dict[str, float]]:
    result: tuple[DataProto, dict[str, float]]
    result = helper.compute_rollout_correction_and_add_to_batch(batch, OmegaConf.create(settings))
    return result


@pytest.mark.parametrize("correction", CORRECTIONS)
@pytest.mark.parametrize("seed", range(3))
def test_the_metrics_of_rollout_correction_are_those_of_the_played_episodes(correction, seed):
    batch, played = batch_of(seed)
    alone = batch.select_idxs(played)
    whole, metrics = corrected(batch, **CORRECTIONS[correction])
    part, expected = corrected(alone, **CORRECTIONS[correction])
    assert len(whole) == ROWS
    assert metrics == expected
    assert "rollout_corr/training_log_ppl" in metrics
    for name in {"response_mask", "rollout_is_weights"} & {*part.batch.keys()}:
        assert torch.equal(whole.batch[name][played], part.batch[name])
        assert not whole.batch[name][~played].any()
        assert whole.batch[name].dtype == part.batch[name].dtype


def test_a_perplexity_by_hand():
    """Rows of two tokens each: log perplexities 1, 2 and 3; verl's mean over four rows would be 1.5."""
    log_probs = -torch.tensor([[1.0, 1.0], [2.0, 2.0], [9.0, 9.0], [3.0, 3.0]])
    mask = torch.tensor([[1, 1], [1, 1], [0, 0], [1, 1]])
    metrics = helper.compute_rollout_corr_metrics_from_logprobs(log_probs, log_probs - 0.5, mask)
    assert metrics["rollout_corr/training_log_ppl"] == pytest.approx(2)
    assert metrics["rollout_corr/log_ppl_diff_max"] == pytest.approx(-0.5)
    assert metrics["rollout_corr/ppl_ratio"] == pytest.approx(math.exp(-0.5))


def test_without_faults_the_metrics_are_verls_own():
    batch, played = batch_of()
    alone = batch.select_idxs(played)
    names = {"old_log_prob": "old_log_probs", "rollout_log_prob": "rollout_log_probs"}
    tensors = {name: alone.batch[column] for name, column in names.items()}
    tensors["response_mask"] = alone.batch["response_mask"]
    function = helper.compute_rollout_correction_and_rejection_mask
    weights, mask, metrics = function(**tensors, rollout_is="token")
    own_weights, own_mask, own = function.__wrapped__(**tensors, rollout_is="token")
    assert metrics == own
    assert torch.equal(mask, own_mask)
    assert torch.equal(weights.batch["rollout_is_weights"], own_weights.batch["rollout_is_weights"])


@pytest.mark.parametrize("loss_type", ["ppo_clip", "reinforce"])
def test_a_micro_batch_of_faulted_episodes_has_no_loss_in_bypass_mode(loss_type):
    """verl's function raises an error for it, which would end the run."""
    batch, played = batch_of()
    faulted, others = batch.select_idxs(~played), batch.select_idxs(played)
    rollout_correction = {"bypass_mode": True, "loss_type": loss_type, **CORRECTIONS["both"]}
    config = OmegaConf.create(
        {
            "policy_loss": {"rollout_correction": rollout_correction},
            "clip_ratio": 0.2,
            "clip_ratio_low": 0.2,
            "clip_ratio_high": 0.2,
            "clip_ratio_c": 3.0,
            "global_batch_info": {"dp_size": 1, "batch_num_tokens": 100, "global_batch_size": ROWS},
        }
    )

    def loss(part: DataProto) -> tuple[torch.Tensor, dict[str, float]]:
        log_prob = part.batch["old_log_probs"].clone().requires_grad_()
        value, metrics = algorithms.compute_policy_loss_bypass_mode(
            old_log_prob=part.batch["rollout_log_probs"],
            log_prob=log_prob,
            advantages=torch.ones_like(log_prob),
            response_mask=part.batch["response_mask"].bool(),
            config=config,
        )
        value.backward()
        assert log_prob.grad is not None
        return log_prob.grad, metrics

    gradient, metrics = loss(faulted)
    assert not gradient.any()
    gradient, usual = loss(others)
    assert gradient.any()
    assert metrics.keys() == usual.keys()  # verl averages them by name over micro-batches
    assert math.isnan(metrics["rollout_corr/training_ppl"])


@pytest.mark.parametrize("adaptive", [False, True])
def test_the_mean_of_kl_in_the_reward_is_of_the_played_episodes(adaptive):
    batch, played = batch_of()

    def penalized(data: DataProto) -> tuple[DataProto, dict[str, float], float]:
        control = (
            algorithms.AdaptiveKLController(0.1, target_kl=0.01, horizon=100)
            if adaptive
            else algorithms.FixedKLController(0.1)
        )
        data, metrics = ray_trainer.apply_kl_penalty(data, kl_ctrl=control)
        return data, metrics, control.value

    alone = batch.select_idxs(played)
    whole, metrics, coefficient = penalized(batch)
    part, expected, expected_coefficient = penalized(alone)
    assert (metrics, coefficient) == (expected, expected_coefficient)
    assert whole is batch
    assert torch.equal(whole.batch["token_level_rewards"][played], part.batch["token_level_rewards"])
    assert not whole.batch["token_level_rewards"][~played].any()
