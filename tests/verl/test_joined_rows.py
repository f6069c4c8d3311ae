"""Episodes with a row for each turn get from every estimator what they get as one row."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import random
import warnings

import numpy as np
import pytest

import needs

pytest.importorskip("verl", reason=needs.reason("verl"))
if importlib.util.find_spec("verl.trainer.ppo.v1") is None:
    pytest.skip("only the trainer of verl 0.9 takes several rows of an episode", allow_module_level=True)

import torch
from omegaconf import OmegaConf
from verl import DataProto
from verl.trainer.ppo import core_algos as algorithms

from verl_bridge import trainer
from verl_bridge._credit.joined_rows import ROW_MEAN, JoinedRows, weigh
from verl_bridge._credit.sessions import ROW_PER_TURN
from verl_bridge._credit.turn_rewards import COLUMN, split_turns

trainer.install()
with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # what verl and Ray warn of then is not ours to mend
    utils = importlib.import_module("verl.trainer.ppo.v1.utils")

# As for one row: test_advantage.py.
ESTIMATORS = sorted(
    str(getattr(name, "value", name))
    for name, function in algorithms.ADV_ESTIMATOR_REGISTRY.items()
    if {"config", "kwargs"} & {*inspect.signature(function).parameters} and name != "remax"
)


def options_of(estimator):
    config = {"norm_adv_by_std_in_grpo": True, "gamma": 0.9, "lam": 0.8, "use_pf_ppo": False}
    config = OmegaConf.create({**config, "gdpo_reward_keys": ["quality"]})
    return {
        "adv_estimator": estimator,
        "gamma": 0.9,
        "lam": 0.8,
        "num_repeat": 4,
        "norm_adv_by_std_in_grpo": True,
        "config": config,
    }


PAD = "pad0_0_0"
TOKENS = ("old_log_probs", "values", "sum_pi_squared")


class Episodes:
    """Episodes with random turns: as rows of turns, and as one row each."""

    def __init__(self, seed, *, faults=True, kl=False, place=False):
        self.draw = random.Random(seed)  # noqa: S311 - no secret
        self.place = place
        self.keys, self.rows, self.whole = [], [], []
        for group in range(3):
            for session in range(4):
                self._add(f"g{group}", session, fault=faults and self.draw.random() < 0.2, kl=kl)
        order = [*range(len(self.rows))]
        self.draw.shuffle(order)
        self.rows = [self.rows[row] for row in order]
        self.keys = [self.keys[row] for row in order]

    def _add(self, group, session, *, fault, kl):
        turns, score = self.draw.randint(1, 5), float(self.draw.randint(0, 2))
        lengths = [self.draw.randint(1, 4) for _ in range(1 if fault else turns)]
        score = 0.0 if fault else score
        tokens = [self._row(length, kl=kl) for length in lengths]
        ends = np.cumsum(lengths).tolist()
        rewards = [self.draw.random() for _ in lengths[:-1]]
        record = (
            None
            if fault
            else {
                "starts": [0, *ends[:-1]],
                "ends": ends,
                "rewards": [*rewards, score - sum(rewards)],
                "states": [f"s{self.draw.randint(0, 2)}" for _ in lengths],
                "place": self.place,
                "penalties": [self.draw.choice([0.0, 0.125]) for _ in lengths],
            }
        )
        parts = (
            [None] * len(lengths)
            if record is None
            else [
                {**part, "starts": [0], "ends": [length]}
                for part, length in zip(split_turns(record), lengths, strict=True)
            ]
        )
        for number, (row, part) in enumerate(zip(tokens, parts, strict=True)):
            self.keys.append(f"{group}_{session}_{number}")
            self.rows.append({**row, "uid": group, "fault": fault, "score": score, "turns": part})
        joined = {name: [value for row in tokens for value in row[name]] for name in (*TOKENS, "kl")}
        self.whole.append({**joined, "uid": group, "fault": fault, "score": score, "turns": record})

    def _row(self, length, *, kl):
        return {
            **{name: [self.draw.random() for _ in range(length)] for name in TOKENS},
            "kl": [self.draw.random() * 0.1 if kl else 0.0 for _ in range(length)],
        }


def batch_of(rows):
    width = max(len(row["kl"]) for row in rows)

    def column(name):
        return torch.tensor(
            [row[name] + [0.0] * (width - len(row[name])) for row in rows], dtype=torch.float64
        )

    mask = torch.zeros(len(rows), width)
    scores = torch.zeros(len(rows), width, dtype=torch.float64)
    for row, own in enumerate(rows):
        mask[row, : len(own["kl"])] = 0.0 if own["fault"] else 1.0
        scores[row, len(own["kl"]) - 1] = own["score"]
    turns = np.empty(len(rows), dtype=object)
    turns[:] = [row["turns"] for row in rows]
    return DataProto.from_dict(
        tensors={
            **{name: column(name) for name in TOKENS},
            "response_mask": mask,
            "responses": torch.ones(len(rows), width, dtype=torch.long),
            "prompts": torch.ones(len(rows), 2, dtype=torch.long),
            "attention_mask": torch.cat([torch.ones(len(rows), 2), mask], dim=1).long(),
            "token_level_scores": scores,
            "token_level_rewards": scores - column("kl") * mask,
        },
        non_tensors={
            "uid": np.array([row["uid"] for row in rows], dtype=object),
            "quality": np.array([row["score"] for row in rows], dtype=object),
            "verl_bridge_faulted": np.array([row["fault"] for row in rows]),
            COLUMN: turns,
        },
    )


def by_rows(episodes, monkeypatch, **options):
    """Advantages by verl's own function for several rows, as `verl_bridge.trainer` wraps it."""
    data = batch_of(episodes.rows)
    extras = {
        key: {"reward_extra_info": {"fault": float(row["fault"])}, COLUMN: row["turns"], ROW_PER_TURN: True}
        for key, row in zip(episodes.keys, episodes.rows, strict=True)
    }
    token = trainer._by_key.set(extras)
    try:
        return utils.compute_advantage_for_multi_trajectories(data, batch_keys=episodes.keys, **options)
    finally:
        trainer._by_key.reset(token)


@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("kl", [False, True])
def test_each_estimator_gives_what_it_gives_to_one_row(estimator, seed, kl, monkeypatch):
    episodes = Episodes(seed, kl=kl, place=seed % 2 == 1)
    options = options_of(estimator)
    expected = sys_compute(batch_of(episodes.whole), **options)
    given = by_rows(episodes, monkeypatch, **options)
    numbers = {}
    for key, advantages, row in zip(episodes.keys, given.batch["advantages"], episodes.rows, strict=True):
        group, session, number = key.split("_")
        numbers.setdefault((group, int(session)), {})[int(number)] = advantages[: len(row["kl"])].tolist()
    for place, whole in enumerate(episodes.whole):
        parts = numbers[whole["uid"], place % 4]
        joined = [value for number in sorted(parts) for value in parts[number]]
        assert joined == pytest.approx(expected.batch["advantages"][place, : len(joined)].tolist(), abs=1e-6)


def sys_compute(data, **options):
    from verl.trainer.ppo import ray_trainer

    return ray_trainer.compute_advantage(data, **options)


@pytest.mark.parametrize("mode", ["token-mean", ROW_MEAN, "seq-mean-token-sum"])
def test_each_episode_has_the_same_weight(mode):
    """With an advantage of 1 at each token, each episode gives the same part of verl's aggregated loss."""
    from verl.trainer.ppo.core_algos import agg_loss

    episodes = Episodes(3, faults=False)
    data = batch_of(episodes.rows)
    mask = data.batch["response_mask"]
    data.batch["advantages"] = mask.double()
    weigh(data, episodes.keys, mode)
    parts = {}
    for row, key in enumerate(episodes.keys):
        alone = torch.zeros_like(data.batch["advantages"])
        alone[row] = data.batch["advantages"][row]
        session = key.rpartition("_")[0]
        parts[session] = parts.get(session, 0.0) + float(agg_loss(alone, mask, mode))
    values = [*parts.values()]
    assert values == pytest.approx([values[0]] * len(values), rel=1e-9)
    assert len(values) == 12


def test_rows_without_faults_come_back_in_their_order():
    episodes = Episodes(5, faults=False)
    data = batch_of(episodes.rows)
    joined = JoinedRows(data, episodes.keys)
    assert len(joined.data) == 12
    joined.data.batch["advantages"] = joined.data.batch["old_log_probs"].clone()
    joined.data.batch["returns"] = joined.data.batch["values"].clone()
    back = joined.split()
    torch.testing.assert_close(back.batch["advantages"], data.batch["old_log_probs"])
    torch.testing.assert_close(back.batch["returns"], data.batch["values"])
