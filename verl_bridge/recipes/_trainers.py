"""The asynchronous trainers of verl 0.9: their choices in a recipe."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from verl_bridge.recipes._recipe import RlRecipe

__all__ = ["NO_SEPARATE_ADAPTERS", "check_trainer"]

NO_SEPARATE_ADAPTERS = "verl 0.9 sends separate engines the base model without the adapters"


def check_trainer(recipe: RlRecipe) -> None:
    """Check the choices for the trainer.

    Raises:
        ValueError: They contradict others, or each other.
    """
    trainer, separate = recipe.trainer, recipe.trainer == "separate_async"
    if recipe.rollout_gpus is not None and not separate:
        raise ValueError(f"rollout_gpus needs trainer='separate_async', unlike trainer={trainer!r}")
    if trainer == "sync":
        return
    if recipe.verl != "0.9":
        raise ValueError(f"verl {recipe.verl} has no trainer={trainer!r}: use verl 0.9, or trainer='sync'")
    if recipe.algorithm == "remax":
        raise ValueError(
            f"only verl's older trainer does ReMax, which has no trainer={trainer!r}: use trainer='sync', or "
            "algorithm='rloo'"
        )
    if not separate:
        return
    if not 0 < recipe.separate_gpus < recipe.gpus:
        raise ValueError(
            f"trainer='separate_async' divides gpus={recipe.gpus} into rollout_gpus={recipe.separate_gpus} "
            "and the others, which train: both need at least 1"
        )
    if recipe.lora:
        raise ValueError(f"{NO_SEPARATE_ADAPTERS}: use trainer='colocate_async' with lora")
    if recipe.size.batch % recipe.mini_batch:
        raise ValueError(
            f"trainer='separate_async' needs a batch of whole updates, and {recipe.size.batch} is not a "
            f"multiple of {recipe.mini_batch}: use trainer='colocate_async'"
        )
