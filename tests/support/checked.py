"""The public check of training folders on a machine without verl, and folders to check."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest

from verl_bridge.recipes import Finding, check, seeded, write_rows

AGENT_LOOP = "verl_bridge.agent_loop.GymAgentLoop"
INTERACTION = "verl_bridge.interaction.GymInteraction"


def checked(folder: Path, *names: str, **options: Any) -> list[Finding]:
    """Return the findings of the checks of these names, by default of all, as where verl is not installed."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "verl", None)
        findings, _ = check(folder, **options)
    return [finding for finding in findings if not names or finding.check in names]


def write_settings(
    folder: Path,
    loop: Mapping[str, Any],
    *,
    interaction: bool = False,
    **settings: Mapping[str, Any],
) -> Path:
    """Write a folder with only these settings, and an agent loop or an interaction with these arguments."""
    import yaml

    entries: Any = [{"name": "gym_env", "_target_": AGENT_LOOP, **loop}]
    rollout = {"agent": {"default_agent_loop": "gym_env", "agent_loop_config_path": "loop.yaml"}}
    if interaction:
        entries = {"interaction": [{"name": "gym_env", "class_name": INTERACTION, "config": dict(loop)}]}
        rollout = {"multi_turn": {"interaction_config_path": "loop.yaml"}}
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "loop.yaml").write_text(yaml.safe_dump(entries))
    whole = {**settings, "actor_rollout_ref": {"rollout": rollout}}
    (folder / "config.yaml").write_text(yaml.safe_dump(whole))
    return folder


def write_tasks(
    folder: Path,
    env_id: str,
    seeds: Iterable[int | None] = (0, 2),
    of_rows: Mapping[str, Any] | None = None,
    *,
    interaction: bool = False,
    **loop: Any,
) -> Path:
    """Write a folder that trains on an environment, with a row for each seed and arguments of the loop."""
    data = {"train_files": "train.parquet"}
    write_settings(folder, {"env_id": env_id, **loop}, interaction=interaction, data=data)
    rows = []
    for number, seed in enumerate(seeds):
        (row,) = seeded(env_id, [number], "Play.")
        row["extra_info"]["interaction_kwargs"] |= {"seed": seed, **(of_rows or {})}
        rows.append(row)
    write_rows(folder / "train.parquet", rows)
    return folder
