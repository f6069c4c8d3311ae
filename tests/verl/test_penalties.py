"""Penalties of turns in verl's own functions: subtracted for the estimator, and nowhere else."""

from __future__ import annotations

import numpy as np
import pytest

import needs

pytest.importorskip("verl", reason=needs.reason("verl"))

import torch

from credit_batches import COLUMN, COUNT, batch_of, options, raw_gae, whitened, with_most_turns_first
from verl_bridge._run.metrics import by_environment
from verl_worker import ScriptedModel

PENALTIES = [[0.0, 0.5, 0.0], [0.25, 0.0], [0.5, 0.5]]
REWARDS = [[0.0, 0.0, 1.0], [0.0, 0.5], [0.0, 0.0]]
STATES = ["abc", "ab", "ab"]


@pytest.mark.parametrize("estimator", ["grpo", "rloo", "gpg"])
def test_an_estimator_of_sums_gets_the_score_less_the_penalties(compute, estimator):
    """The last episode faulted, so that neither its score nor its penalties count."""
    given = compute(batch_of(REWARDS, STATES, "ggg", [0, 0, 1], penalties=PENALTIES), **options(estimator))
    lowered = [[0.0, 0.0, 0.5], [0.0, 0.25], [0.0, 0.0]]
    expected = compute(batch_of(lowered, STATES, "ggg", [0, 0, 1]), **options(estimator))
    assert torch.equal(given.batch["advantages"], expected.batch["advantages"])
    plain = compute(batch_of(REWARDS, STATES, "ggg", [0, 0, 1]), **options(estimator))
    assert not torch.equal(given.batch["advantages"], plain.batch["advantages"])


@pytest.mark.parametrize("place", [False, True])
def test_an_estimator_over_tokens_gets_each_penalty_at_the_end_of_its_turn(compute, place):
    data = batch_of(REWARDS, STATES, "ghi", [0, 0, 1], penalties=PENALTIES, place=place)
    compute(data, **options("gae", gamma=0.5))
    tokens = [[0, 0.0, 0, -0.5, 0, 1.0], [0, -0.25, 0, 0.5]]
    mask = data.batch["response_mask"].bool()
    for row, own in enumerate(whitened([raw_gae(own, 0.5) for own in tokens])):
        assert data.batch["advantages"][row][mask[row]].tolist() == pytest.approx(own, abs=1e-5)
    assert not data.batch["advantages"][2].any()


@pytest.mark.parametrize("estimator", ["grpo", "gae", "gym_gigpo"])
def test_scores_and_rewards_of_verls_metrics_stay(compute, estimator):
    data = batch_of(REWARDS, STATES, "ggg", penalties=PENALTIES)
    before = {name: data.batch[f"token_level_{name}"].clone() for name in ("scores", "rewards")}
    assert compute(data, **options(estimator)) is data
    for name, tensor in before.items():
        assert torch.equal(data.batch[f"token_level_{name}"], tensor)


def test_episodes_of_equal_scores_and_penalties_have_equal_advantages(compute):
    """Wherever the penalties are: a rounding of their sum would be divided by a deviation close to 0."""
    draw = np.random.default_rng(0)
    lengths = range(5, 13)
    rewards = [[*[0.0] * (size - 1), 1.0] for size in lengths]
    penalties = [[*draw.permutation([0.1] * 3 + [0.0] * (size - 3))] for size in lengths]
    data = batch_of(rewards, ["abcdefghijkl"[:size] for size in lengths], "g" * 8, penalties=penalties)
    compute(data, **options("grpo", by_std=True))
    assert len(set(data.batch["advantages"][:, 0].tolist())) == 1


REPLIES = ["1", "what?", "2", "3", "4"]
"""Counting, with a reply that the environment rejects."""


@pytest.mark.parametrize("validation", [False, True])
def test_a_penalty_is_recorded_in_training_only(play, validation):
    row = {"env_id": COUNT, "env_kwargs": '{"goal": 4, "invalid": -1}', "reset_options": "{}", "seed": None}
    played = play(
        lambda tokenizer: ScriptedModel(tokenizer, REPLIES, REPLIES),
        [row, row],
        invalid_action_penalty=0.25,
        validate=validation,
        step=3,
    )
    (first, second) = with_most_turns_first(played)
    record = played.field(first, "reward_extra_info")
    turns = played.field(first, COLUMN)
    if validation:
        assert (turns, "penalty" in record) == (None, False)
    else:
        assert turns["penalties"] == [0.0, 0.25, 0.0, 0.0, 0.0]
        both = [played.field(row, "reward_extra_info") for row in (first, second)]
        assert by_environment(both)[f"env/{record['env_id']}/penalty"] == 0.25
    assert record["return"] == 3.0  # with the environment's own -1
    assert played.field(first, "turn_scores") == [1.0, -1.0, 1.0, 1.0, 1.0]
