"""The choices for verl 0.9's asynchronous trainers that contradict others."""

from __future__ import annotations

__all__ = ["NO_SEPARATE_ADAPTERS", "check_split", "check_trainer"]

NO_SEPARATE_ADAPTERS = "verl 0.9 sends separate engines the base model without the adapters"


def check_trainer(trainer: str, *, verl: str, algorithm: str, lora: int) -> None:
    """Check whether verl has a trainer for the other choices.

    Args:
        trainer: The trainer.
        verl: The version of verl.
        algorithm: The algorithm.
        lora: The rank of adapters; 0 for none.

    Raises:
        ValueError: It has none.
    """
    if trainer == "sync":
        return
    if verl != "0.9":
        raise ValueError(f"verl {verl} has no --trainer={trainer!r}: use verl 0.9, or --trainer='sync'")
    if algorithm == "remax":
        raise ValueError(
            f"only verl's older trainer does ReMax, which has no --trainer={trainer!r}: use "
            "--trainer='sync', or --algorithm='rloo'"
        )
    if lora and trainer == "separate_async":
        raise ValueError(f"{NO_SEPARATE_ADAPTERS}: use --trainer='colocate_async' with lora")


def check_split(trainer: str, *, gpus: int, rollout_gpus: int, batch: int, mini_batch: int) -> None:
    """Check how ``separate_async`` divides the GPUs and the batch.

    Args:
        trainer: The trainer.
        gpus: Number of GPUs.
        rollout_gpus: Number of those that only generate.
        batch: Prompts in a step.
        mini_batch: Prompts in an update.

    Raises:
        ValueError: One part has no GPU, an update would have another size than the others, or another trainer
            is to divide the GPUs.
    """
    if trainer != "separate_async":
        if rollout_gpus:
            raise ValueError(f"--rollout-gpus needs --trainer='separate_async', unlike --trainer={trainer!r}")
        return
    if not 0 < rollout_gpus < gpus:
        raise ValueError(
            f"--trainer='separate_async' divides --gpus={gpus} into --rollout-gpus={rollout_gpus} and the "
            "others, which train: both need at least 1"
        )
    if batch % mini_batch:
        raise ValueError(
            f"--trainer='separate_async' needs a batch of whole updates, and {batch} is not a multiple of "
            f"{mini_batch}: use --trainer='colocate_async'"
        )
