"""Credit by turn in verl's own functions: turn rewards and the estimator gym_gigpo, also with faults."""

from __future__ import annotations

import inspect
import math
import sys
from collections.abc import Callable
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import needs

pytest.importorskip("verl", reason=needs.reason("verl"))

import torch
from verl.trainer.ppo import core_algos

from credit_batches import (
    COLUMN,
    COUNT,
    batch_of,
    options,
    random_batch,
    raw_gae,
    whitened,
    with_most_turns_first,
)
from credit_formulas import gigpo
from verl_functions import wrapped
from verl_worker import ScriptedModel

if TYPE_CHECKING:
    from verl import DataProto

SAID = ["1", "2", "5", "3", "4"], ["1", "2", "3", "4"]
"""Two episodes: 5 is wrong, and leaves the game in its state."""


def expected(data: DataProto, **settings: Any) -> np.ndarray:
    """The advantages by the formulas, of the episodes without a fault; those alone after faults have 0."""
    groups, faults = [*data.non_tensor_batch["uid"]], data.non_tensor_batch["fault"]
    kept = [
        row
        for row, group in enumerate(groups)
        if not faults[row]
        and (
            sum(not faults[i] and groups[i] == group for i in range(len(groups))) > 1
            or groups.count(group) == 1
        )
    ]
    result = np.zeros(tuple(data.batch["response_mask"].shape))
    result[kept] = gigpo(
        data.batch["token_level_rewards"].double().numpy()[kept],
        data.batch["response_mask"].numpy()[kept],
        [groups[row] for row in kept],
        [data.non_tensor_batch[COLUMN][row] for row in kept],
        **settings,
    )
    return result


@pytest.mark.parametrize("by_std", [True, False])
@pytest.mark.parametrize(("dtype", "within"), [(torch.float64, 1e-9), (torch.float32, 1e-5)])
def test_gigpo_follows_the_paper(compute, report_at_end, dtype, within, by_std):
    largest = 0.0
    for seed in range(100):
        data = random_batch(seed, dtype=dtype, penalty=0.1)
        wanted = expected(data, gamma=0.95, omega=0.7, by_std=by_std)
        compute(data, **options("gym_gigpo", gamma=0.95, by_std=by_std, gym_gigpo_omega=0.7))
        assert data.batch["advantages"].dtype == data.batch["returns"].dtype == dtype
        assert torch.equal(data.batch["advantages"], data.batch["returns"])
        largest = max(largest, np.abs(data.batch["advantages"].double().numpy() - wanted).max())
    assert largest < within
    report_at_end(f"gym_gigpo, {dtype}, by_std={by_std}: {largest:.1e} from the paper's formulas at most")


@pytest.mark.parametrize("by_std", [True, False])
def test_gigpo_without_turns_is_verls_grpo(compute, by_std):
    for seed in range(10):
        given, grpo = random_batch(seed), random_batch(seed)
        compute(given, **options("gym_gigpo", by_std=by_std, gym_gigpo_omega=0))
        compute(grpo, **options("grpo", by_std=by_std))
        torch.testing.assert_close(given.batch["advantages"], grpo.batch["advantages"], rtol=1e-4, atol=1e-4)


def test_a_fault_is_in_no_group_of_gigpo(compute):
    """Of four episodes one faulted: means are over three, and in the state b over two."""
    rewards, states = [[0.0, 1.0], [0.0, 0.0], [0.0, 0.0], [0.0, 0.0]], ["ab", "ab", "ac", "ab"]
    data = compute(batch_of(rewards, states, "gggg", [0, 0, 0, 1]), **options("gym_gigpo", gamma=0.5))
    first = data.batch["advantages"][:, 0].tolist()
    assert first == pytest.approx([2 / 3 + 1 / 3, -1 / 3 - 1 / 6, -1 / 3 - 1 / 6, 0])
    second = data.batch["advantages"][:, 3].tolist()
    assert second == pytest.approx([2 / 3 + 1 / 2, -1 / 3 - 1 / 2, -1 / 3, 0])
    assert not data.batch["advantages"][:, 2].any()  # the observation


def test_padding_of_verl_has_no_advantage(compute):
    data = batch_of([[1.0], [0.0], [0.0]], ["a", "a", "a"], "ggp")
    data.non_tensor_batch[COLUMN][2] = None
    data.batch["response_mask"][2] = 0
    compute(data, **options("gym_gigpo"))
    assert data.batch["advantages"][:, 0].tolist() == pytest.approx([1.0, -1.0, 0.0])


def test_gigpo_needs_the_turns(compute):
    for change in (lambda data: data.non_tensor_batch.pop(COLUMN), lambda data: data.meta_info.clear()):
        data = batch_of([[1.0], [0.0]], ["a", "a"], "gg")
        change(data)
        with pytest.raises(ValueError, match="gym_gigpo needs the turns"):
            compute(data, **options("gym_gigpo"))


@pytest.mark.parametrize("name", ["gym_gigpo_omega", "gamma"])
def test_the_weight_and_the_discount_are_numbers(compute, name):
    data = batch_of([[1.0], [0.0]], ["a", "a"], "gg")
    with pytest.raises(ValueError, match=rf"algorithm\.{name}='much'"):
        compute(data, **options("gym_gigpo", **{name: "much"}))
    compute(data, **options("gym_gigpo", **{name: None}))  # null, which is 1
    assert data.batch["advantages"][:, 0].tolist() == [1.0, -1.0]


@pytest.fixture
def placed(compute) -> Callable[[DataProto], torch.Tensor]:
    """Returns the rewards of tokens from which GAE computes advantages."""
    return lambda data: compute(data, **options("gae")).batch["token_level_rewards"]


def test_rewards_are_at_the_last_tokens_of_their_turns(placed):
    data = batch_of([[0.5, -0.25, 1.0], [1.0, 0.0]], ["abc", "ab"], "gg", place=True)
    assert placed(data).tolist() == [
        [0, 0.5, 0, 0, -0.25, 0, 0, 1.0, 0],
        [0, 1.0, 0, 0, 0, 0, 0, 0, 0],
    ]
    assert data.batch["token_level_scores"].nonzero().tolist() == [[0, 7], [1, 4]]  # metrics stay


def test_turn_rewards_sum_to_the_score(placed):
    """In float32 the last turn's reward is rounded once; a sum of powers of two is exact."""
    draw = np.random.default_rng(0)
    for _ in range(300):
        lengths = draw.integers(1, 12, 8)
        rewards = [[float(value) for value in draw.normal(size=size)] for size in lengths]
        rewards += [[float(value) / 64 for value in draw.integers(-99, 99, size)] for size in lengths]
        data = batch_of(rewards, ["a" * len(own) for own in rewards], "g" * 16, place=True)
        scores = data.batch["token_level_scores"].double().sum(1)
        off = (placed(data).double().sum(1) - scores).abs()
        last = torch.tensor([abs(math.fsum(own) - math.fsum(own[:-1])) for own in rewards])
        assert (off <= last * 2**-24 + 1e-12).all()
        assert not off[8:].any()


def test_the_kl_term_stays(placed):
    data = batch_of([[0.5, 1.0], [0.25, 0.0]], ["ab", "ab"], "gg", place=True)
    kl = -torch.arange(1, 13).reshape(2, 6) / 128
    data.batch["token_level_rewards"] = data.batch["token_level_scores"] + kl
    wanted = torch.tensor([[0, 0.5, 0, 0, 1.0, 0], [0, 0.25, 0, 0, 0, 0]]) + kl
    assert torch.equal(placed(data), wanted)


def test_a_turn_without_a_token_leaves_its_reward_to_the_last(placed):
    data = batch_of([[0.5, 0.25, 1.0]], ["abc"], "g", place=True)
    data.non_tensor_batch[COLUMN][0]["ends"][1] = 3
    assert placed(data).tolist() == [[0, 0.5, 0, 0, 0, 0, 0, 1.25, 0]]
    data.non_tensor_batch[COLUMN][0]["ends"] = [0, 3, 6]
    assert placed(data).tolist() == [[0, 0.5, 0, 0, 0, 0, 0, 1.25, 0]]


def test_other_episodes_keep_their_rewards(placed):
    data = batch_of([[0.5, 1.0], [0.25, 0.0]], ["ab", "ab"], "gg", [0, 1], place=False)
    before = data.batch["token_level_rewards"].clone()
    assert torch.equal(placed(data), before)


RESTARTS = "running_return = running_return * response_mask"
"""In the source of REINFORCE++ of verl 0.7 and 0.8, whose sum restarts at each observation."""


@pytest.mark.parametrize("estimator", ["gae", "reinforce_plus_plus"])
def test_a_fault_is_in_no_sum_of_turn_rewards(compute, estimator):
    """Of three episodes one faulted. Each reply has two tokens, and the discount is one half for a token."""
    rewards = [[0.5, 0.0, 1.0], [0.25, 0.0], [0.0, 0.0]]
    data = batch_of(rewards, ["abc", "ab", "ab"], "ghg", [0, 0, 1], place=True)
    compute(data, **options(estimator, gamma=0.5))
    tokens = [[0, 0.5, 0, 0.0, 0, 1.0], [0, 0.25, 0, 0.0]]
    if estimator == "reinforce_plus_plus" and restarts():
        sums = [
            [value for at in range(0, len(own), 2) for value in raw_gae(own[at : at + 2], 0.5)]
            for own in tokens
        ]
    else:
        sums = [raw_gae(own, 0.5) for own in tokens]
    mask = data.batch["response_mask"].bool()
    for row, own in enumerate(whitened(sums)):
        assert data.batch["advantages"][row][mask[row]].tolist() == pytest.approx(own, abs=1e-5)
    assert not data.batch["advantages"][2].any()


def restarts() -> bool:
    return RESTARTS in inspect.getsource(core_algos.compute_reinforce_plus_plus_outcome_advantage)


@pytest.mark.parametrize("estimator", ["grpo", "rloo", "gym_gigpo"])
def test_estimators_that_sum_are_not_changed(compute, estimator):
    """Not by a rounding either: all of these episodes score 10, and the deviation of their group is 0."""
    draw = np.random.default_rng(0)
    rewards = [[round(float(part), 2) for part in draw.random(size)] for size in range(1, 9)]
    rewards = [[*own, 10.0 - math.fsum(own)] for own in rewards]
    given, plain = (
        batch_of(rewards, ["abcdefghi"[: len(own)] for own in rewards], "g" * 8, place=place)
        for place in (True, False)
    )
    for data in (given, plain):
        compute(data, **options(estimator, by_std=True, gym_gigpo_omega=0))
    assert torch.equal(given.batch["advantages"], plain.batch["advantages"])
    assert not plain.batch["advantages"].any()


@pytest.fixture
def counted(play) -> Callable[..., Any]:
    """Two episodes of counting, in verl's own worker."""
    row = {"env_id": COUNT, "env_kwargs": '{"goal": 4}', "reset_options": "{}", "seed": None}
    rows = [row for _ in SAID]
    return lambda **loop: play(lambda tokenizer: ScriptedModel(tokenizer, *SAID), rows, **loop)


def test_nothing_is_played_without_the_module_that_places_the_rewards(counted, monkeypatch):
    monkeypatch.delitem(sys.modules, "verl_bridge.trainer")
    with pytest.raises(Exception, match="turn_rewards: true needs"):
        counted(turn_rewards=True)


def test_the_loop_records_the_tokens_of_each_turn(counted):
    played = counted(turn_rewards=True)
    for script, row in zip(SAID, with_most_turns_first(played), strict=True):
        turns = played.field(row, COLUMN)
        assert turns["place"] is True
        assert turns["states"] == []
        assert turns["rewards"] == played.field(row, "turn_scores")
        mask = np.array(played.mask(row))
        spans = [*zip(turns["starts"], turns["ends"], strict=True)]
        assert sum(end - start for start, end in spans) == mask.sum()
        assert all(mask[start:end].all() for start, end in spans)
        said = [played.tokenizer.decode(played.ids(row)[start:end]) for start, end in spans]
        assert [text.removesuffix("<|im_end|>") for text in said] == script


def test_nothing_is_recorded_without_need(counted):
    assert counted().field(0, COLUMN) is None


def test_states_are_recorded_for_gigpo(counted):
    played = counted(overrides=["algorithm.adv_estimator=gym_gigpo"])
    first, second = (played.field(row, COLUMN) for row in with_most_turns_first(played))
    assert not first["place"]
    assert len(set(second["states"])) == 4
    assert first["states"] == [second["states"][at] for at in (0, 1, 2, 2, 3)]


def test_the_turns_come_from_verls_replay_buffer(compute, monkeypatch):
    """In verl 0.9, by the keys of the episodes; rows of padding have no key there."""
    try:
        from verl.trainer.ppo.v1 import utils
    except ImportError:
        pytest.skip("only verl 0.9 has a replay buffer")
    data = batch_of([[0.5, 0.0, 1.0], [0.25, 0.0], [0.0], [1.0]], ["abc", "ab", "a", "a"], "gggp", place=True)
    turns = data.non_tensor_batch.pop(COLUMN)
    data.batch["response_mask"][3] = 0
    keys = [*(f"g_{number}_0" for number in range(3)), "pad_0_0"]
    kept = {
        key: {"reward_extra_info": {"env_id": "test/Some-v0", "fault": float(row == 2)}, COLUMN: turns[row]}
        for row, key in enumerate(keys[:3])
    }

    class Queue:
        @staticmethod
        def kv_batch_get(keys: list[str], **_: Any) -> dict[str, Any]:
            return {"extra_fields": [kept[key] for key in keys]}

    batch = SimpleNamespace(keys=keys, tags=[{}, {}, {}, {"is_padding": True}], partition_id="train")
    monkeypatch.setitem(sys.modules, "transfer_queue", Queue)

    class PPOTrainer:
        def _balance_batch(self, batch):
            """Has verl's name."""

    wrapped(monkeypatch, "verl.trainer.ppo.v1.trainer_base", PPOTrainer=PPOTrainer)
    PPOTrainer()._balance_batch(batch)
    compute_by_keys = utils.compute_advantage_for_multi_trajectories
    result = compute_by_keys(data, batch_keys=keys, **options("gym_gigpo"))
    first = result.batch["advantages"][:, 0].tolist()
    assert first == pytest.approx([0.625 + 0.625, -0.625 - 0.625, 0, 0])
    result = compute_by_keys(data, batch_keys=keys, **options("gae"))
    assert result.batch["token_level_rewards"][0].nonzero().flatten().tolist() == [1, 7]
