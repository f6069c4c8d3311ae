"""Batches of episodes with turns, as verl's trainer passes them to an estimator."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from omegaconf import OmegaConf
from verl import DataProto

COLUMN = "gym_turns"
COUNT = "counting_env:bridge/Count-v0"


def batch_of(
    rewards: list[list[float]],
    states: list[str],
    groups: str,
    faults: list[int] | None = None,
    *,
    place: bool = False,
    penalties: list[list[float]] | None = None,
    dtype: torch.dtype = torch.float32,
) -> DataProto:
    """A batch in which each reply has two tokens, and each observation between two replies has one."""
    count, length = len(rewards), 3 * max(map(len, rewards))
    faults = faults or [0] * count
    mask, tokens = torch.zeros(count, length, dtype=torch.long), torch.zeros(count, length, dtype=dtype)
    turns = np.empty(count, dtype=object)
    for row, own in enumerate(rewards):
        starts = [3 * turn for turn in range(len(own))]
        tokens[row, starts[-1] + 1] = math.fsum(own)
        if faults[row]:
            continue
        for start in starts:
            mask[row, start : start + 2] = 1
        turns[row] = {
            "starts": starts,
            "ends": [start + 2 for start in starts],
            "rewards": own,
            "states": list(states[row]),
            "place": place,
            "penalties": [0.0] * len(own) if penalties is None else penalties[row],
        }
    tensors = {
        "token_level_rewards": tokens,
        "token_level_scores": tokens,  # the same tensor, as verl has it without a KL term
        "response_mask": mask,
        "values": torch.zeros(count, length, dtype=dtype),
    }
    columns = {
        "uid": np.array([*groups], dtype=object),
        "env_id": np.array(["test/Some-v0"] * count, dtype=object),
        "fault": np.array([float(fault) for fault in faults]),
        COLUMN: turns,
    }
    data = DataProto.from_dict(tensors=tensors, non_tensors=columns)
    data.meta_info["reward_extra_keys"] = ["env_id", "fault"]
    return data


def options(estimator: str, *, gamma: float = 1.0, by_std: bool = False, **others: Any) -> dict[str, Any]:
    config = {"norm_adv_by_std_in_grpo": by_std, "gamma": gamma, "lam": 1.0, "use_pf_ppo": False, **others}
    given = {"gamma": gamma, "lam": 1.0, "num_repeat": 4, "norm_adv_by_std_in_grpo": by_std}
    return {"adv_estimator": estimator, **given, "config": OmegaConf.create(config)}


def random_batch(
    seed: int, *, place: bool = False, dtype: torch.dtype = torch.float32, penalty: float = 0.0
) -> DataProto:
    draw = np.random.default_rng(seed)
    count = 12
    lengths = draw.integers(1, 7, count)
    rewards = [[round(float(value), 3) for value in draw.normal(size=size)] for size in lengths]
    states = ["".join(draw.choice([*"abc"], size=size)) for size in lengths]
    groups = "".join(draw.choice([*"xyz"], size=count))
    faults = [int(fault) for fault in draw.random(count) < 0.2]
    lost = [[penalty * float(draw.random() < 0.3) for _ in own] for own in rewards]
    return batch_of(rewards, states, groups, faults, place=place, penalties=lost, dtype=dtype)


def raw_gae(rewards: list[float], gamma: float) -> list[float]:
    """Of a critic that answers 0, by lambda 1: rewards to come, over tokens of the model."""
    return [
        sum(gamma ** (later - at) * rewards[later] for later in range(at, len(rewards)))
        for at in range(len(rewards))
    ]


def whitened(values: list[list[float]]) -> list[list[float]]:
    """As verl whitens: over all tokens of the batch, by the deviation of a sample."""
    flat = np.concatenate([np.array(own) for own in values])
    return [list((np.array(own) - flat.mean()) / np.sqrt(flat.var(ddof=1) + 1e-8)) for own in values]


def with_most_turns_first(played: Any) -> list[int]:
    """Return the rows in the order of their scripts, which go to whichever episode asks first."""
    return sorted(range(2), key=lambda row: -len(played.field(row, "turn_scores")))
