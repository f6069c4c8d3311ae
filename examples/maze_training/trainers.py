"""Command lines of verl's trainers for a tiny model, for any environment."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

__all__ = ["ALGORITHMS", "VARIABLES", "Training", "grpo_settings", "sft_settings"]

VARIABLES = {
    "VERL_USE_EXTERNAL_MODULES": "verl_bridge.cpu,verl_bridge.trainer",
    "HF_HUB_OFFLINE": "1",
    "RAY_USAGE_STATS_ENABLED": "0",
    "TOKENIZERS_PARALLELISM": "false",
}
"""The environment variables of both trainers."""

ALGORITHMS = {
    "grpo": ("algorithm.adv_estimator=grpo",),
    "gigpo": ("algorithm.adv_estimator=gym_gigpo", "algorithm.gamma=0.95"),
}
"""verl's settings of each algorithm; the discount is that of GiGPO's paper, for each turn."""


@dataclass(frozen=True)
class Training:
    """The settings of both trainers.

    Attributes:
        sft_steps: Maximum steps of fine-tuning.
        sft_every: Steps from one checkpoint to the next.
        sft_batch: Games in one step.
        sft_learning_rate: Constant.
        steps: Of GRPO.
        prompts: Tasks in one step.
        rollouts: Episodes of each of them.
        mini_batch: Tasks in one update.
        epochs: How often a step's episodes are used.
        learning_rate: Of GRPO, after `warmup_steps` over which it rises.
        warmup_steps: Of GRPO.
        prompt_length: Maximum tokens of the system message with the first observation.
        response_length: Maximum tokens of the rest.
    """

    sft_steps: int = 120
    sft_every: int = 3
    sft_batch: int = 8
    sft_learning_rate: float = 1.5e-3

    steps: int = 28
    prompts: int = 16
    rollouts: int = 8
    mini_batch: int = 4
    epochs: int = 1
    learning_rate: float = 1e-3
    warmup_steps: int = 3

    prompt_length: int = 64
    response_length: int = 640


def sft_settings(numbers: Training, *, model: Path, games: Sequence[Path], seed: int, out: Path) -> list[str]:
    """Return the arguments of ``verl_bridge.cpu.sft``: verl's settings of supervised fine-tuning.

    Args:
        numbers: Settings of the training.
        model: The folder of the model.
        games: The parquet files of the training games.
        seed: Random seed of the order of the games.
        out: The folder of the checkpoints.
    """
    return [
        f"model.path={model}",
        f"data.train_files=[{','.join(map(str, games))}]",
        f"data.train_batch_size={numbers.sft_batch}",
        f"data.micro_batch_size_per_gpu={numbers.sft_batch}",
        f"data.max_length={numbers.prompt_length + numbers.response_length}",
        f"optim.lr={numbers.sft_learning_rate}",
        "checkpoint.save_contents=[hf_model]",
        "trainer.logger=[console]",
        f"trainer.seed={seed}",
        "trainer.total_epochs=1000",
        f"trainer.total_training_steps={numbers.sft_steps}",
        f"trainer.save_freq={numbers.sft_every}",
        "trainer.test_freq=-1",
        "trainer.resume_mode=disable",
        f"trainer.default_local_dir={out}",
    ]


def grpo_settings(
    numbers: Training,
    *,
    model: Path,
    tasks: Path,
    loop: Path,
    seed: int,
    out: Path,
    validation: Path | None = None,
    algorithm: str = "grpo",
) -> list[str]:
    """Return the arguments of ``verl.trainer.main_ppo``, without the settings for a CPU.

    Args:
        numbers: Settings of the training.
        model: The folder of the model.
        tasks: The parquet file of the tasks.
        loop: The file that names the agent loop.
        seed: Random seed of the order of the tasks and of all sampling.
        out: The folder of the checkpoints.
        validation: The parquet file of the tasks for validation; without one, verl gets `tasks` and must not
            validate.
        algorithm: One of :data:`ALGORITHMS`; GiGPO differs from GRPO in its advantages only.
    """
    actor, rollout = "actor_rollout_ref.actor", "actor_rollout_ref.rollout"
    update = numbers.mini_batch * numbers.rollouts  # episodes
    return [
        *ALGORITHMS[algorithm],
        "algorithm.rollout_correction.bypass_mode=True",  # the server's log-probs are the trainer's
        f"data.train_files={tasks}",
        f"data.val_files={validation or tasks}",
        f"data.train_batch_size={numbers.prompts}",
        f"data.max_prompt_length={numbers.prompt_length}",
        f"data.max_response_length={numbers.response_length}",
        f"data.seed={seed}",
        f"actor_rollout_ref.model.path={model}",
        f"{actor}.ppo_mini_batch_size={numbers.mini_batch}",
        f"{actor}.ppo_epochs={numbers.epochs}",
        f"{actor}.ppo_micro_batch_size_per_gpu={update}",
        # GRPO's own mean: over an episode's tokens, then over episodes. With a mean over all tokens, long
        # failures outweigh short successes.
        f"{actor}.loss_agg_mode=seq-mean-token-mean",
        f"{actor}.checkpoint.save_contents=[hf_model]",
        f"{actor}.optim.lr={numbers.learning_rate}",
        f"{actor}.optim.lr_warmup_steps={numbers.warmup_steps}",
        f"{rollout}.n={numbers.rollouts}",
        f"{rollout}.seed={seed}",
        f"{rollout}.calculate_log_probs=True",
        f"{rollout}.log_prob_micro_batch_size_per_gpu={update}",
        f"{rollout}.agent.agent_loop_config_path={loop}",
        f"trainer.save_freq={numbers.steps}",
        "trainer.total_epochs=1000",
        f"trainer.total_training_steps={numbers.steps}",
        "trainer.resume_mode=disable",
        f"trainer.default_local_dir={out}",
    ]
