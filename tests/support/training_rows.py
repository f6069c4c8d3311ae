"""Rows of the tasks of a training, as verl reads them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any


def training_row(
    number: int,
    env_id: str,
    *,
    system: str,
    kwargs: Mapping[str, Any] | None = None,
    options: Mapping[str, Any] | None = None,
    agent: str = "gym_env",
) -> dict[str, Any]:
    """The row of a task, whose seed is its number; the id of its environment names a module."""
    return {
        "prompt": [{"role": "system", "content": system}],
        "agent_name": agent,
        "data_source": env_id.partition(":")[2],
        "ability": "agent",
        "reward_model": {"style": "rule", "ground_truth": ""},
        "extra_info": {
            "index": number,
            "interaction_kwargs": {
                "name": "gym_env",
                "env_id": env_id,
                "env_kwargs": json.dumps(kwargs or {}),
                "reset_options": json.dumps(options or {}),
                "seed": number,
            },
        },
    }
