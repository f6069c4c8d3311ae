"""The settings with which verl trains a tiny model to guess a digit, and its tasks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from guessing_env import TEXTS
from training_rows import training_row

ROWS, ROLLOUTS = 4, 4


def row(number: int, integration: str) -> dict[str, Any]:
    return training_row(
        number,
        "guessing_env:test/Guessing-v0",
        system=TEXTS[0],
        options={"secret": number % 9 + 1},
        agent="gym_env" if integration == "agent_loop" else "tool_agent",
    )


def by_integration(folder: Path | str, integration: str) -> list[str]:
    """Settings of verl for how episodes are played."""
    if integration == "agent_loop":
        return [f"actor_rollout_ref.rollout.agent.agent_loop_config_path={folder}/loop.yaml"]
    return [
        "actor_rollout_ref.rollout.multi_turn.enable=True",
        f"actor_rollout_ref.rollout.multi_turn.interaction_config_path={folder}/interaction.yaml",
        "reward.custom_reward_function.path=pkg://verl_bridge.reward",
        "reward.custom_reward_function.name=compute_score",
        "data.max_response_length=256",  # verl's loop cuts no reply short
    ]


def step_of(folder: Path | str, integration: str = "agent_loop") -> list[str]:
    """Settings of verl in addition to the ones for a CPU: one step, over the files in a folder."""
    return [
        "algorithm.adv_estimator=grpo",
        f"data.train_files={folder}/rows.parquet",
        f"data.val_files={folder}/rows.parquet",
        f"data.train_batch_size={ROWS}",
        "data.max_prompt_length=64",
        "data.max_response_length=64",
        f"actor_rollout_ref.model.path={folder}/tiny",
        f"actor_rollout_ref.actor.ppo_mini_batch_size={ROWS}",
        "actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=8",
        "actor_rollout_ref.actor.optim.lr=1e-3",
        f"actor_rollout_ref.rollout.n={ROLLOUTS}",
        "actor_rollout_ref.rollout.calculate_log_probs=True",
        "actor_rollout_ref.rollout.log_prob_micro_batch_size_per_gpu=8",
        *by_integration(folder, integration),
        "trainer.logger=[console]",
        "trainer.val_before_train=False",
        "trainer.test_freq=-1",
        "trainer.save_freq=1",
        "trainer.total_epochs=1",
        "trainer.total_training_steps=1",
        "trainer.resume_mode=disable",
        f"trainer.rollout_data_dir={folder}/rollouts",
        f"trainer.default_local_dir={folder}/checkpoints",
    ]


def lines(file: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in file.read_text().splitlines()]
