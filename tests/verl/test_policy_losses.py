"""The policy losses of recipes: verl has each, and each is proportional to the advantage."""

from __future__ import annotations

from importlib import metadata
from types import SimpleNamespace

import pytest

import needs

pytest.importorskip("verl", reason=needs.reason("verl"))

import torch
from verl.trainer.ppo.core_algos import get_policy_loss_fn
from verl.workers.config import FSDPActorConfig, PolicyLossConfig

from verl_bridge._credit.joined_rows import weigh
from verl_bridge.recipes._policy_losses import LOSSES

MINOR = ".".join(metadata.version("verl").split(".")[:2])
ROWS, WIDTH = 6, 5


def loss_of(name, *, mode=None, clip=None):
    """Returns verl's loss and its gradient at given advantages, for one batch with ratios around 1."""
    made = LOSSES.get(name)
    low, high = clip or (made and made.clip) or (0.2, 0.2)
    config = FSDPActorConfig(
        policy_loss=PolicyLossConfig(**({"dro_beta": 0.1} if mode == "dro" else {})),
        clip_ratio_low=low,
        clip_ratio_high=high,
        clip_ratio_c=(made and made.dual) or 3.0,
        rollout_n=1,
        ppo_micro_batch_size_per_gpu=1,
    )
    function = get_policy_loss_fn(mode or (made and made.mode) or "vanilla")
    generator = torch.Generator().manual_seed(7)
    old = -torch.rand(ROWS, WIDTH, generator=generator, dtype=torch.float64)
    step = torch.randn(ROWS, WIDTH, generator=generator, dtype=torch.float64)
    mask = torch.ones(ROWS, WIDTH, dtype=torch.float64)
    mask[1, 3:] = mask[4, 2:] = 0

    def compute(advantages):
        new = (old + step).requires_grad_()
        loss, _ = function(old, new, advantages, mask, "seq-mean-token-mean", config)
        loss.backward()
        return loss.item(), new.grad

    return compute, mask


def advantages():
    generator = torch.Generator().manual_seed(3)
    return torch.randn(ROWS, 1, generator=generator, dtype=torch.float64).expand(ROWS, WIDTH)


@pytest.mark.parametrize("name", LOSSES)
def test_the_loss_of_a_row_is_proportional_to_its_advantage(name):
    compute, _ = loss_of(name)
    scale = torch.tensor([0.25, 3.0, 1.0, 7.5, 0.1, 2.0], dtype=torch.float64)[:, None]
    loss, gradient = compute(advantages())
    _, scaled = compute(advantages() * scale)
    assert loss != 0
    assert gradient.abs().sum() > 0
    torch.testing.assert_close(scaled, gradient * scale)


@pytest.mark.parametrize("mode", ["clip_cov", *(["dro"] if MINOR == "0.9" else [])])
def test_other_losses_of_verl_are_not(mode):
    """Otherwise the test above could not fail."""
    torch.manual_seed(0)
    compute, _ = loss_of(None, mode=mode)
    _, gradient = compute(advantages())
    torch.manual_seed(0)
    _, scaled = compute(advantages() * 3)
    assert not torch.allclose(scaled, gradient * 3)


@pytest.mark.parametrize("name", LOSSES)
def test_episodes_with_a_row_for_each_turn_have_the_same_weight(name):
    """Three episodes of one, two and three turns: each has a third of the loss that its tokens have alone."""
    compute, mask = loss_of(name)
    keys = ["a_0_0", "b_0_0", "b_0_1", "c_0_0", "c_0_1", "c_0_2"]
    data = SimpleNamespace(
        batch={"response_mask": mask, "advantages": torch.ones(ROWS, WIDTH, dtype=torch.float64)}
    )
    weigh(data, keys, "seq-mean-token-mean")
    _, plain = compute(torch.ones(ROWS, WIDTH, dtype=torch.float64))
    _, weighed = compute(data.batch["advantages"])
    lengths = mask.sum(dim=-1)
    for rows in ([0], [1, 2], [3, 4, 5]):
        share = ROWS * lengths[rows, None] / (3 * lengths[rows].sum())
        torch.testing.assert_close(weighed[rows], plain[rows] * share)


def test_gspo_clips_a_row_as_a_whole():
    """With rows of turns the sequence of GSPO is a turn: its mean ratio decides for all of its tokens."""
    compute, mask = loss_of("gspo")
    _, gradient = compute(torch.ones(ROWS, WIDTH, dtype=torch.float64))
    clipped = gradient == 0
    own = mask > 0
    assert all(row[used].all() or not row[used].any() for row, used in zip(clipped, own, strict=True))
    assert clipped[own].any()
    assert not clipped[own].all()


def test_cispo_keeps_the_gradient_of_every_token():
    compute, mask = loss_of("cispo")
    _, gradient = compute(advantages())
    assert (gradient[mask > 0] != 0).all()
    _, clipped = loss_of("vanilla")[0](advantages())
    assert (clipped[mask > 0] == 0).any()
