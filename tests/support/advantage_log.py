"""A module for verl to load, which keeps what each estimator of advantages was given, and what it returned.

``ADVANTAGES`` names a folder; its files are numbered in the order of the calls, one per step.
"""

from __future__ import annotations

import functools
import itertools
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from verl.trainer.ppo import core_algos

from verl_bridge._credit.passed_turns import _passed

_numbers = itertools.count(1)


def logged(name: str, original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def call(**given: Any) -> Any:
        kept = {key: value.clone() for key, value in given.items() if isinstance(value, torch.Tensor)}
        kept["index"] = [str(group) for group in given.get("index", ())]
        passed = _passed.get()
        kept["turns"] = list(passed.turns)
        if passed.values is not None:
            kept["values"] = passed.values.clone()
        advantages, returns = original(**given)
        folder = Path(os.environ["ADVANTAGES"])
        torch.save(
            kept | {"estimator": name, "advantages": advantages.clone()}, folder / f"{next(_numbers)}.pt"
        )
        return advantages, returns

    return call


for _name, _estimator in [*core_algos.ADV_ESTIMATOR_REGISTRY.items()]:
    core_algos.ADV_ESTIMATOR_REGISTRY[_name] = logged(_name, _estimator)
# verl calls these two by their names.
core_algos.compute_gae_advantage_return = logged("gae", core_algos.compute_gae_advantage_return)
core_algos.compute_grpo_outcome_advantage = logged("grpo", core_algos.compute_grpo_outcome_advantage)
