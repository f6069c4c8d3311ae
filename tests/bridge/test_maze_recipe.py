"""docs/training/maze.md names each setting in which `make train-demo` differs from what init writes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from verl_bridge.recipes import RlRecipe, write

ROOT = Path(__file__).resolve().parents[2]
NAMES = {  # names, paths, and what the settings for a CPU set
    "actor_rollout_ref.model.path",
    "actor_rollout_ref.rollout.agent.agent_loop_config_path",
    "actor_rollout_ref.rollout.agent.default_agent_loop",
    "actor_rollout_ref.rollout.name",
    "data.train_files",
    "data.val_files",
    "trainer.default_local_dir",
    "trainer.experiment_name",
    "trainer.logger",
    "trainer.n_gpus_per_node",
    "trainer.project_name",
    "trainer.val_before_train",
}


def flat(tree: Mapping[str, Any], at: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in tree.items():
        if isinstance(value, Mapping):
            yield from flat(value, f"{at}{key}.")
        else:
            yield at + key, value


def test_the_page_names_each_difference(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "examples/maze_training"))
    from recipe import FULL
    from trainers import grpo_settings

    write(RlRecipe("agentgym_gym:agentgym/Maze-v0", preset="train"), tmp_path)
    written = yaml.safe_load((tmp_path / "config.yaml").read_text())
    init = dict(flat({key: written[key] for key in ("data", "actor_rollout_ref", "algorithm", "trainer")}))
    paths = {"model": Path("m"), "tasks": Path("t"), "loop": Path("l"), "out": Path("o")}
    pairs = (setting.split("=", 1) for setting in grpo_settings(FULL, seed=0, **paths))
    demo = {key: yaml.safe_load(value) for key, value in pairs}
    section = (ROOT / "docs/training/maze.md").read_text("utf-8").split("## Comparison")[1].split("\n## ")[0]
    named = set(re.findall(r"`([\w.]+)`", section))
    differing = {key for key in init.keys() | demo.keys() if init.get(key) != demo.get(key)} - NAMES
    assert "actor_rollout_ref.actor.optim.lr" in differing
    unnamed = {key for key in differing if not any(f".{key}.".find(f".{name}.") >= 0 for name in named)}
    assert unnamed == set()
    for same in (
        "algorithm.adv_estimator",
        "actor_rollout_ref.rollout.n",
        "actor_rollout_ref.actor.loss_agg_mode",
    ):
        assert init[same] == demo[same]
    assert init["data.train_batch_size"] / init["actor_rollout_ref.actor.ppo_mini_batch_size"] == 4
    assert demo["data.train_batch_size"] / demo["actor_rollout_ref.actor.ppo_mini_batch_size"] == 4
