"""The engine's share of the memory of GPUs that only generate, in verl 0.9's trainer ``separate_async``."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from typing import Any

from verl_bridge._run.run_checks import warned

__all__ = ["SEPARATE_SHARE", "start_engines"]

SEPARATE_SHARE = "standalone_gpu_memory_utilization"
"""A setting of ``actor_rollout_ref.rollout``, which only verl's ``fully_async_policy`` reads."""


def start_engines(_: Callable[..., Any], arguments: Mapping[str, Any], call: Callable[[], Any]) -> Any:
    """Give the engines on separate GPUs their share, before ``LLMServerManager`` starts them.

    verl's trainer starts engines of both kinds with the same ``gpu_memory_utilization``, and the other kind
    must leave room for the state of the training.
    """
    manager = arguments["self"]
    with warned("the engine's share of GPUs that only generate"):
        share = manager.rollout_config.get(SEPARATE_SHARE)
        if share is not None and manager.worker_group is None:
            # A copy, because the other manager reads the same configuration.
            manager.rollout_config = copy.deepcopy(manager.rollout_config)
            manager.rollout_config.gpu_memory_utilization = share
    return call()
