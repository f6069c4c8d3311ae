"""Functions of verl's trainer that `verl_bridge.trainer` wraps, replaced by those of a test."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

from verl_bridge import trainer

if TYPE_CHECKING:
    import pytest

METRICS = "verl.trainer.ppo.metric_utils"
RAY_TRAINER = "verl.trainer.ppo.ray_trainer"


class Batch:
    """A batch of verl's trainer up to 0.8, of episodes with these records."""

    def __init__(self, records: Sequence[Mapping[str, Any]], **meta_info: Any) -> None:
        self.records = records
        names = dict.fromkeys(name for record in records for name in record)
        self.non_tensor_batch = {name: np.empty(len(records), object) for name in names}
        for name, column in self.non_tensor_batch.items():
            column[:] = [record.get(name) for record in records]
        self.meta_info = {"reward_extra_keys": [*names], **meta_info}

    def __len__(self) -> int:
        return len(self.records)

    def select_idxs(self, indices: Sequence[int]) -> Batch:
        """Return a batch of some of the episodes."""
        return Batch([self.records[index] for index in indices])


def wrapped(monkeypatch: pytest.MonkeyPatch, name: str, **members: Any) -> Any:
    """Return a module in place of one of verl, whose functions and classes have been wrapped."""
    module = ModuleType(name)
    vars(module).update(members)
    monkeypatch.setitem(sys.modules, name, module)
    trainer.install()
    return module


def metrics_of(monkeypatch: pytest.MonkeyPatch, records: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """Return the metrics of a training step with these records, without those of verl."""
    module = wrapped(monkeypatch, METRICS, compute_data_metrics=lambda batch: {})
    metrics: dict[str, float] = module.compute_data_metrics(Batch(records))
    return {name: value for name, value in metrics.items() if name != "env/lost_groups"}
