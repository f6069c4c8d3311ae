"""One value for each turn: the estimator gym_turn_gae in verl's own functions, also with faults."""

from __future__ import annotations

import numpy as np
import pytest

import needs

pytest.importorskip("verl", reason=needs.reason("verl"))

import torch

from credit_batches import COLUMN, batch_of, options, random_batch
from credit_formulas import turn_gae


@pytest.mark.parametrize("place", [False, True])
@pytest.mark.parametrize(("dtype", "within"), [(torch.float64, 1e-9), (torch.float32, 1e-5)])
def test_it_follows_the_formula(compute, report_at_end, dtype, within, place):
    """An independent computation in float64, over the turns of the episodes without a fault."""
    largest, seen_faults = 0.0, 0
    for seed in range(100):
        data = random_batch(seed, place=place, dtype=dtype, penalty=0.125)
        draw = np.random.default_rng(seed)
        data.batch["values"] = torch.tensor(draw.normal(size=data.batch["values"].shape), dtype=dtype)
        kl = torch.tensor(draw.normal(size=data.batch["values"].shape) * 0.1, dtype=dtype)
        kl *= data.batch["response_mask"]
        data.batch["token_level_rewards"] = data.batch["token_level_scores"] + kl
        scored = data.batch["token_level_scores"].double().numpy()
        rewards = kl.double().numpy().copy()
        turns = [*data.non_tensor_batch[COLUMN]]
        for row, own in enumerate(turns):
            if own is None:
                seen_faults += 1
                continue
            paid = own["rewards"] if place else [*[0.0] * (len(own["rewards"]) - 1), scored[row].sum()]
            for end, reward, penalty in zip(own["ends"], paid, own["penalties"], strict=True):
                rewards[row, end - 1] += reward - penalty
        wanted = turn_gae(rewards, data.batch["values"].double().numpy(), turns, gamma=0.95, lam=0.9)
        compute(data, **options("gym_turn_gae", gamma=0.95, lam=0.9))
        for name, expected in zip(("advantages", "returns"), wanted, strict=True):
            assert data.batch[name].dtype == dtype
            largest = max(largest, np.abs(data.batch[name].double().numpy() - expected).max())
    assert largest < within
    assert seen_faults > 50
    report_at_end(f"gym_turn_gae, {dtype}, placed={place}: {largest:.1e} from the formula at most")


def test_a_case_with_numbers(compute):
    """A discount of one half a turn; the second reply of the first episode is longer, and counts once."""
    data = batch_of([[0.0, 1.0], [0.0, 0.0]], ["ab", "ab"], "gh")
    data.batch["values"] = torch.full_like(data.batch["values"], 9.0)  # which nobody reads
    for row, values in enumerate([[0.25, 0.5], [0.25, 0.0]]):
        data.batch["values"][row, 0], data.batch["values"][row, 3] = values
    compute(data, **options("gym_turn_gae", gamma=0.5, lam=1.0))
    raw = [0.25, 0.5, -0.25, 0.0]  # the second turn's 0.5 is 1 less 0.5; the first's 0.5 * 1 less 0.25
    scaled = (np.array(raw) - np.mean(raw)) / np.std(raw, ddof=1)
    given = data.batch["advantages"][:, [0, 3]].flatten().tolist()
    assert given == pytest.approx([*scaled], abs=1e-5)
    assert data.batch["returns"][0].tolist() == [0.5, 0.5, 0.0, 1.0, 1.0, 0.0]
    assert torch.equal(data.batch["advantages"][:, 0], data.batch["advantages"][:, 1])
    assert not data.batch["advantages"][:, 2].any()  # the observation


def test_long_replies_do_not_decide_the_mean(compute):
    """The same turns with replies of other lengths have the same advantages."""
    short, long = (batch_of([[1.0, 0.0], [0.0, 0.5]], ["ab", "ab"], "gh", place=True) for _ in range(2))
    long.batch["response_mask"][0, 0] = 0
    turns = long.non_tensor_batch[COLUMN][0]
    turns["starts"] = [1, 3]
    for data in (short, long):
        compute(data, **options("gym_turn_gae"))
    assert short.batch["advantages"][:, 1].tolist() == long.batch["advantages"][:, 1].tolist()


def test_a_turn_without_a_token_is_a_part_of_the_turn_before(compute):
    data, shorter = (batch_of([[0.0, 0.0, 1.0], [0.0, 0.0, 0.0]], ["abc", "abc"], "gh") for _ in range(2))
    data.non_tensor_batch[COLUMN][0]["ends"][1] = 3
    for name in ("starts", "ends", "rewards", "states", "penalties"):
        del shorter.non_tensor_batch[COLUMN][0][name][1]
    for each in (data, shorter):
        compute(each, **options("gym_turn_gae", gamma=0.5))
    assert torch.equal(data.batch["returns"], shorter.batch["returns"])
    assert data.batch["returns"][0, 0] == 0.5


def test_it_needs_a_critic_and_turns(compute):
    data = batch_of([[1.0], [0.0]], ["a", "a"], "gh")
    del data.batch["values"]
    with pytest.raises(ValueError, match=r"needs a critic: set critic\.enable"):
        compute(data, **options("gym_turn_gae"))
    data = batch_of([[1.0], [0.0]], ["a", "a"], "gh")
    del data.non_tensor_batch[COLUMN]
    with pytest.raises(ValueError, match="gym_turn_gae needs the turns"):
        compute(data, **options("gym_turn_gae"))


@pytest.mark.parametrize("name", ["gamma", "lam"])
def test_the_discount_and_lambda_are_numbers(compute, name):
    data = batch_of([[1.0], [0.0]], ["a", "a"], "gh")
    with pytest.raises(ValueError, match=rf"algorithm\.{name}='much'"):
        compute(data, **options("gym_turn_gae", **{name: "much"}))


def test_a_single_turn_has_no_advantage(compute):
    data = compute(batch_of([[1.0]], ["a"], "g"), **options("gym_turn_gae"))
    assert not data.batch["advantages"].any()
    assert data.batch["returns"][0, 0] == 1.0
