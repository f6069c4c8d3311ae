"""The tasks of any text environment as verl's rows: one for each seed.

AgentGym's own environments have numbered tasks and data sets; ``agentgym data rl`` writes their rows.
"""

from __future__ import annotations

import importlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from agentgym_gym.rollout import EnvMaker, row_messages, split_id

__all__ = ["LOOP", "own_prompt", "seeded", "write_rows"]

LOOP = "gym_env"
"""The name of the loop and of the interaction, which the rows refer to and the templates define."""


def own_prompt(env_id: str, env_kwargs: Mapping[str, Any]) -> str | None:
    """Return the system prompt of an environment, or None.

    It is the attribute ``system_prompt`` of a wrapper or of the environment, as in an evaluation.

    Raises:
        ValueError: The id is not registered, or the environment cannot be made.
    """
    try:
        return EnvMaker(env_id, env_kwargs).facts().system_prompt
    except Exception as error:  # a constructor may raise anything
        raise ValueError(
            f"the environment {env_id!r} cannot be made: {type(error).__name__}: {error}"
        ) from error


def seeded(
    env_id: str,
    seeds: Iterable[int],
    system_prompt: str | None,
    env_kwargs: Mapping[str, Any] | None = None,
) -> list[dict[str, Any]]:
    """Return a row for each seed of an environment's ``reset``.

    Args:
        env_id: gymnasium's id, with its module.
        seeds: The seeds.
        system_prompt: The system prompt; None for none.
        env_kwargs: Arguments of the environment, unless the yaml of the loop has them.
    """
    return [
        {
            "data_source": split_id(env_id)[1],
            "prompt": row_messages(system_prompt),
            "ability": "agent",
            "reward_model": {"style": "rule", "ground_truth": ""},
            "agent_name": LOOP,
            "extra_info": {
                "index": seed,
                "interaction_kwargs": {
                    "name": LOOP,
                    "env_id": env_id,
                    "env_kwargs": json.dumps(dict(env_kwargs or {})),
                    "reset_options": "{}",
                    "seed": seed,
                },
            },
        }
        for seed in seeds
    ]


def write_rows(file: Path, rows: list[dict[str, Any]]) -> None:
    """Write rows as parquet.

    Raises:
        ModuleNotFoundError: pyarrow is not installed.
        OSError: The file cannot be written.
    """
    pyarrow, parquet = importlib.import_module("pyarrow"), importlib.import_module("pyarrow.parquet")
    file.parent.mkdir(parents=True, exist_ok=True)
    parquet.write_table(pyarrow.Table.from_pylist(rows), file)
