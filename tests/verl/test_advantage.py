"""Faulted episodes move no group: the advantages of every estimator of verl, with numbers."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest

import needs

pytest.importorskip("verl", reason=needs.reason("verl"))

import torch
from omegaconf import OmegaConf
from verl import DataProto
from verl.trainer.ppo import core_algos as algorithms

# verl 0.7.1 cannot call its own token baselines: they do not take the argument that it passes.
ESTIMATORS = sorted(
    str(getattr(name, "value", name))
    for name, function in algorithms.ADV_ESTIMATOR_REGISTRY.items()
    if {"config", "kwargs"} & {*inspect.signature(function).parameters}
    and not name.startswith("gym_")  # they need turns: test_credit.py, test_turn_gae.py
)
LENGTH = 6


def batch_of(
    scores: list[float], groups: str, faults: list[int], *, seed: int = 0, baselines: bool = False
) -> DataProto:
    """A batch in which each episode has its score at its last token, with an observation in its middle."""
    count, draw = len(scores), torch.Generator().manual_seed(seed)
    mask = torch.ones(count, LENGTH)
    mask[:, 2] = 0  # an observation
    mask[1::2, LENGTH - 1] = 0  # padding
    rewards = torch.zeros(count, LENGTH)
    for row, score in enumerate(scores):
        rewards[row, LENGTH - 2 if row % 2 else LENGTH - 1] = score
    mask[torch.tensor(faults, dtype=torch.bool)] = 0
    tensors = {
        "token_level_rewards": rewards,
        "token_level_scores": rewards.clone(),
        "response_mask": mask,
        "responses": torch.ones(count, LENGTH, dtype=torch.long),
        "attention_mask": torch.ones(count, 2 + LENGTH, dtype=torch.long),
        "prompts": torch.ones(count, 2, dtype=torch.long),
        "values": torch.rand(count, LENGTH, generator=draw),
        "old_log_probs": -torch.rand(count, LENGTH, generator=draw),
        "sum_pi_squared": torch.rand(count, LENGTH, generator=draw),
    }
    if baselines:
        tensors["reward_baselines"] = torch.rand(count, generator=draw)
    columns = {
        "uid": np.array([*groups], dtype=object),
        "env_id": np.array(["test/Some-v0"] * count, dtype=object),
        "fault": np.array([float(fault) for fault in faults]),
        "quality": np.array(scores, dtype=object),  # what GDPO compares
    }
    data = DataProto.from_dict(tensors=tensors, non_tensors=columns)
    data.meta_info["reward_extra_keys"] = ["env_id", "fault"]
    return data


def options_of(estimator: str, *, by_std: bool = True) -> dict[str, Any]:
    config = OmegaConf.create(
        {
            "norm_adv_by_std_in_grpo": by_std,
            "gamma": 1.0,
            "lam": 0.9,
            "use_pf_ppo": False,
            "gdpo_reward_keys": ["quality"],
        }
    )
    return {
        "adv_estimator": estimator,
        "gamma": 1.0,
        "lam": 0.9,
        "num_repeat": 4,
        "norm_adv_by_std_in_grpo": by_std,
        "config": config,
    }


def first_tokens(data: DataProto) -> list[float]:
    return data.batch["advantages"][:, 0].tolist()


@pytest.mark.parametrize(
    ("estimator", "by_std", "scores", "faults", "expected"),
    [
        ("grpo", False, [1, 1, 0, 0], [0, 1, 0, 0], [0.667, 0, -0.333, -0.333]),
        ("grpo", True, [1, 1, 0, 0], [0, 1, 0, 0], [1.155, 0, -0.577, -0.577]),
        ("grpo", False, [1, 3, 2, 0], [0, 0, 0, 1], [-1, 1, 0, 0]),
        ("grpo_vectorized", True, [1, 1, 0, 0], [0, 1, 0, 0], [1.155, 0, -0.577, -0.577]),
        ("rloo", False, [1, 0, 0, 0], [0, 1, 0, 0], [1, 0, -0.5, -0.5]),
        ("rloo", False, [1, 0, 0, 0], [0, 0, 0, 0], [1, -0.333, -0.333, -0.333]),
        ("rloo_vectorized", False, [1, 0, 0, 0], [1, 0, 0, 0], [0, 0, 0, 0]),
    ],
)
def test_cases_with_numbers(compute, estimator, by_std, scores, faults, expected):
    if estimator not in ESTIMATORS:
        pytest.skip(f"this verl has no {estimator}")
    data = batch_of([float(score) for score in scores], "aaaa", faults)
    given = compute(data, **options_of(estimator, by_std=by_std))
    assert given is data
    assert first_tokens(given) == pytest.approx(expected, abs=2e-3)


def kept_rows(estimator: str, groups: str, faults: list[int]) -> list[int]:
    rows = [row for row, fault in enumerate(faults) if not fault]
    if estimator in {"gae", "reinforce_plus_plus", "remax"}:  # these compare with no other episode
        return rows
    left = [groups[row] for row in rows]
    return [row for row in rows if left.count(groups[row]) > 1]


@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize("seed", range(5))
def test_the_advantages_equal_a_batch_without_the_faulted_episodes(compute, estimator, seed):
    draw = np.random.default_rng(seed)
    groups = "aaaabbbbccccdddd"
    scores = [float(score) for score in draw.permutation(16)]
    # One of a faulted, maybe two of b; one is left of c, and none of d.
    faults = [*draw.permutation([1, 0, 0, 0]), *draw.permutation([1, 0, 0, seed % 2]), 0, 1, 1, 1, *[1] * 4]
    scores = [0.0 if fault else score for score, fault in zip(scores, faults, strict=True)]
    kept = kept_rows(estimator, groups, faults)
    given, part = (
        batch_of(scores, groups, faults, seed=seed, baselines=estimator == "remax") for _ in range(2)
    )
    given = compute(given, **options_of(estimator))
    part = part.select_idxs(np.array(kept))
    expected = compute.__wrapped__(part, **options_of(estimator))
    rest = [row for row in range(16) if row not in kept]
    for name in ("advantages", "returns"):
        assert torch.equal(given.batch[name][kept], expected.batch[name]), name
        assert not given.batch[name][rest].any()
    assert given.batch["advantages"][kept].any()
    assert given.batch["advantages"].isfinite().all()


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_without_faults_they_are_verls_own(compute, estimator):
    scores = [1.0, 0.0, 2.0, 0.5, 0.0, 3.0, 1.0, 1.0]
    given, expected = (
        function(
            batch_of(scores, "aaaabbbb", [0] * 8, baselines=estimator == "remax"), **options_of(estimator)
        )
        for function in (compute, compute.__wrapped__)
    )
    assert torch.equal(given.batch["advantages"], expected.batch["advantages"])


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_which_estimators_sum_the_rewards_of_an_episode(compute, estimator):
    """The others depend on the tokens that have them: so only these get turn rewards."""
    scores = [1.0, 0.0, 2.0, 0.5]
    whole, by_turn, placed = (
        batch_of(scores, "aabb", [0] * 4, baselines=estimator == "remax") for _ in range(3)
    )
    rewards = by_turn.batch["token_level_rewards"]
    rewards /= 2
    rewards[:, 1] = rewards.sum(1)  # at the last token before the observation
    for data in (whole, by_turn):
        compute.__wrapped__(data, **options_of(estimator))
    mask = whole.batch["response_mask"].bool()
    equal = torch.allclose(whole.batch["advantages"][mask], by_turn.batch["advantages"][mask], atol=1e-5)
    ends = [(2, LENGTH - row % 2) for row in range(4)]
    turns = [
        {
            "starts": [0, 3],
            "ends": [*end],
            "rewards": [score / 2] * 2,
            "states": [],
            "place": True,
            "penalties": [0.0, 0.0],
        }
        for end, score in zip(ends, scores, strict=True)
    ]
    placed.non_tensor_batch["gym_turns"] = np.array([*turns, None], dtype=object)[:-1]
    compute(placed, **options_of(estimator))
    left = torch.equal(placed.batch["token_level_rewards"], whole.batch["token_level_rewards"])
    assert left is equal


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_a_batch_of_nothing_but_faults_has_no_advantages(compute, estimator):
    given = compute(batch_of([0.0] * 4, "aabb", [1] * 4), **options_of(estimator))
    assert given.batch["advantages"].shape == given.batch["returns"].shape == (4, LENGTH)
    assert not given.batch["advantages"].any()


def test_a_group_of_one_has_verls_advantage(compute):
    """As with ``n=1``, where verl uses the score itself."""
    data = batch_of([1.0, 0.0, 0.5, 0.0, 0.7], "aabbc", [0, 1, 0, 0, 0])
    given = first_tokens(compute(data, **options_of("grpo")))
    assert given == pytest.approx([0, 0, 0.707, -0.707, 0.7], abs=1e-3)


def test_an_episode_whose_baseline_faulted_is_left_out(compute):
    """The agent loop scores a faulted baseline of ReMax as NaN."""
    data = batch_of([1.0, 0.5, 0.0], "abc", [0, 0, 0])
    data.batch["reward_baselines"] = torch.tensor([0.25, torch.nan, 1.0])
    given = compute(data, **options_of("remax"))
    assert first_tokens(given) == [0.75, 0.0, -1.0]


def test_episodes_of_other_agent_loops_are_not_touched(compute):
    """They may mask a whole episode for reasons of their own, and have no record."""
    data = batch_of([1.0, 1.0, 0.0, 0.0], "aaaa", [0, 1, 0, 0])
    data.meta_info.clear()
    given = compute(data, **options_of("grpo", by_std=False))
    assert first_tokens(given) == pytest.approx([0.5, 0, -0.5, -0.5])


def test_a_masked_episode_that_did_not_fault_counts(compute):
    """verl's rollout correction masks whole episodes too."""
    data = batch_of([1.0, 1.0, 0.0, 0.0], "aaaa", [0, 0, 0, 0])
    data.batch["response_mask"][1] = 0
    given = compute(data, **options_of("grpo", by_std=False))
    assert first_tokens(given) == pytest.approx([0.5, 0, -0.5, -0.5])


def test_the_loss_of_masked_episodes_needs_the_tokens_of_the_whole_batch():
    """As the documentation says: alone a micro-batch of them is 0/0; with verl's global count it is 0."""
    nothing = torch.zeros(1, 4)
    assert torch.isnan(algorithms.agg_loss(torch.ones(1, 4), nothing, "token-mean"))
    assert algorithms.agg_loss(torch.ones(1, 4), nothing, "token-mean", batch_num_tokens=8) == 0
