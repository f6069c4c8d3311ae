"""What a masked zero does to its group, and what `gym_grpo` does about it."""

from __future__ import annotations

import numpy as np
import pytest

WHY = "verl is not installed; nox -s verl-0.9 verl-0.8 verl-0.7 runs these tests"
algorithms = pytest.importorskip("verl.trainer.ppo.core_algos", reason=WHY)
torch = pytest.importorskip("torch", reason=WHY)
ours = pytest.importorskip("verl_bridge.advantage", reason=WHY)


def batch(scores, faults, length=4):
    rewards = torch.zeros(len(scores), length)
    rewards[:, -1] = torch.tensor(scores)
    mask = torch.ones(len(scores), length)
    mask[[i for i, fault in enumerate(faults) if fault]] = 0
    return rewards, mask


def test_verls_own_counts_a_masked_zero():
    rewards, mask = batch([1.0, 1.0, 0.0, 0.0], [0, 0, 0, 1])
    advantages, _ = algorithms.compute_grpo_outcome_advantage(rewards, mask, np.array(["a"] * 4))
    assert advantages[:, 0].tolist() == pytest.approx([0.866, 0.866, -0.866, 0.0], abs=1e-3)


def test_ours_leaves_it_out():
    rewards, mask = batch([1.0, 1.0, 0.0, 0.0], [0, 0, 0, 1])
    estimate = algorithms.get_adv_estimator_fn("gym_grpo")
    advantages, returns = estimate(token_level_rewards=rewards, response_mask=mask, index=np.array(["a"] * 4))
    assert advantages[:, 0].tolist() == pytest.approx([0.577, 0.577, -1.155, 0.0], abs=1e-3)
    assert torch.equal(advantages, returns)


def test_without_faults_it_is_verls_own():
    rewards, mask = batch([1.0, 0.0, 0.5, 0.2], [0] * 4)
    index = np.array(["a", "a", "b", "b"])
    for by_std in (True, False):
        expected, _ = algorithms.compute_grpo_outcome_advantage(
            rewards, mask, index, norm_adv_by_std_in_grpo=by_std
        )
        given, _ = ours.compute_gym_grpo_advantage(
            rewards, mask, index, config={"norm_adv_by_std_in_grpo": by_std}
        )
        assert torch.equal(given, expected)


def test_a_batch_of_nothing_but_faults_has_no_advantages():
    rewards, mask = batch([0.0, 0.0], [1, 1])
    advantages, _ = ours.compute_gym_grpo_advantage(rewards, mask, np.array(["a", "a"]))
    assert advantages.abs().sum() == 0


@pytest.mark.parametrize("estimator", ["grpo", "gym_grpo"])
def test_a_group_of_nothing_but_faults_harms_no_other(estimator):
    rewards, mask = batch([1.0, 0.0, 0.0, 0.0], [0, 0, 1, 1])
    index = np.array(["a", "a", "b", "b"], dtype=object)
    given, _ = algorithms.get_adv_estimator_fn(estimator)(
        token_level_rewards=rewards, response_mask=mask, index=index
    )
    alone, _ = algorithms.compute_grpo_outcome_advantage(rewards[:2], mask[:2], index[:2])
    assert torch.equal(given[:2], alone)
    assert given[2:].abs().sum() == 0


def test_the_last_of_a_group_is_compared_with_nothing():
    """verl takes its score for its advantage, as it does in a group of one."""
    rewards, mask = batch([1.0, 0.0, 0.5, 0.0, 0.7], [0, 1, 0, 0, 0])
    index = np.array(["a", "a", "b", "b", "c"], dtype=object)
    given, _ = ours.compute_gym_grpo_advantage(rewards, mask, index)
    assert given[:2].abs().sum() == 0
    assert given[:, 0].tolist() == pytest.approx([0, 0, 0.707, -0.707, 0.7], abs=1e-3)


def test_the_loss_of_masked_episodes_needs_the_tokens_of_the_whole_batch():
    """As the documentation says: alone a micro-batch of them is 0/0; with verl's global count it is 0."""
    nothing = torch.zeros(1, 4)
    assert torch.isnan(algorithms.agg_loss(torch.ones(1, 4), nothing, "token-mean"))
    assert algorithms.agg_loss(torch.ones(1, 4), nothing, "token-mean", batch_num_tokens=8) == 0
