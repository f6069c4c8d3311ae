"""The tasks of any text environment as verl's rows: one for each seed.

AgentGym's own environments have numbered tasks and data sets; ``agentgym data rl`` writes their rows.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from agentgym_gym import data
from agentgym_gym.data import Item, Recipe, Seeds
from agentgym_gym.rollout import EnvMaker, split_id

__all__ = ["own_prompt", "seeded", "write_rows"]


def own_prompt(env_id: str, env_kwargs: Mapping[str, Any]) -> str | None:
    """Return the system prompt of an environment, or None.

    It is the attribute ``system_prompt`` of a wrapper or of the environment, as in an evaluation.

    Raises:
        ValueError: The id is not registered, or the environment cannot be created.
    """
    return EnvMaker(env_id, env_kwargs).facts().system_prompt


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
    module, bare = split_id(env_id)
    environment = Seeds(bare)
    recipe = Recipe(env_kwargs or {}, system_prompt, module or "")
    rows = list(data.rows([Item(environment, seed) for seed in seeds], {environment.name: recipe}))
    for row in rows:
        row["extra_info"]["index"] = row["extra_info"]["interaction_kwargs"]["seed"]
    return rows


def write_rows(file: Path, rows: list[dict[str, Any]]) -> None:
    """Write rows as parquet.

    Raises:
        ModuleNotFoundError: pyarrow is not installed.
        OSError: The file cannot be written.
    """
    pyarrow, parquet = importlib.import_module("pyarrow"), importlib.import_module("pyarrow.parquet")
    file.parent.mkdir(parents=True, exist_ok=True)
    parquet.write_table(pyarrow.Table.from_pylist(rows), file)
