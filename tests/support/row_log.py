"""A module for verl to load, which keeps all rows of each step as the update gets them.

``ROWS`` names a folder; its files are numbered in the order of the steps.
"""

from __future__ import annotations

import functools
import itertools
import os
from pathlib import Path
from typing import Any

import torch
from verl.trainer.ppo.v1 import trainer_base

FIELDS = (
    *("uid", "prompts", "responses", "response_mask", "rm_scores", "rollout_log_probs", "old_log_probs"),
    *("advantages", "returns"),
)

_numbers = itertools.count(1)
_original = trainer_base.PPOTrainer._compute_advantage


@functools.wraps(_original)
def _kept(self: Any, batch: Any, metrics: dict[str, Any]) -> Any:
    result = _original(self, batch, metrics)
    fields = [*FIELDS, "values"] if self.use_critic else [*FIELDS]
    data = trainer_base.tq.kv_batch_get(
        keys=batch.keys, partition_id=batch.partition_id, select_fields=fields
    )
    rows = [
        {
            "key": key,
            **{name: torch.as_tensor(data[name][row]).tolist() for name in fields if name != "uid"},
        }
        for row, key in enumerate(batch.keys)
    ]
    torch.save(rows, Path(os.environ["ROWS"]) / f"{next(_numbers)}.pt")
    return result


trainer_base.PPOTrainer._compute_advantage = _kept
