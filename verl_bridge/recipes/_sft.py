"""The choices for a fine-tuning run on whole games, and the numbers derived from them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from verl_bridge.recipes._names import option_of
from verl_bridge.recipes._recipe import DEFAULT_MODEL, VERSIONS

__all__ = ["EVAL_ENGINES", "MAX_LENGTH", "SFT_PRESETS", "Evaluation", "SftPreset", "SftRecipe"]

EVAL_ENGINES = ("sglang", "vllm", "transformers")

MAX_LENGTH = 8_192
"""Default maximum tokens of a game; verl's default limit of tokens on a GPU at a time is the same."""


class SftPreset(NamedTuple):
    """The amount of training.

    Attributes:
        batch: Games in a step.
        epochs: Passes over the games.
        each_epoch: Whether to save a checkpoint and compute the validation loss after each epoch too.
    """

    batch: int
    epochs: int
    each_epoch: bool


SFT_PRESETS: Mapping[str, SftPreset] = {
    "test": SftPreset(batch=8, epochs=1, each_epoch=False),
    "full": SftPreset(batch=32, epochs=3, each_epoch=True),
}


@dataclass(frozen=True)
class Evaluation:
    """An evaluation after the training.

    Attributes:
        name: The environment, as in ``agentgym eval``.
        options: Further arguments of that command.
    """

    name: str
    options: tuple[str, ...] = ()


@dataclass(frozen=True)
class SftRecipe:
    """The choices of a fine-tuning run.

    Args:
        model: Name or path of the model.
        name: The name of the run.
        verl: The version of verl, one of :data:`~verl_bridge.recipes.VERSIONS`.
        preset: One of :data:`SFT_PRESETS`.
        gpus: Number of GPUs, all in one machine.
        batch: Games in a step; by default that of the preset.
        epochs: Passes over the games; by default those of the preset.
        learning_rate: The learning rate.
        max_length: Maximum tokens of a game.
        validation: Whether there are games for validation.
        offload: Whether to offload parameters, gradients and the optimizer's state to main memory; not with
            verl 0.7.
        checkpointing: Whether to recompute activations instead of storing them (gradient checkpointing).
        evaluations: The evaluations after the training.
        eval_engine: The inference engine of the evaluations, one of :data:`EVAL_ENGINES`.

    Raises:
        ValueError: A choice is invalid, or two choices contradict each other.
    """

    model: str = DEFAULT_MODEL
    name: str = "sft"
    verl: str = "0.9"
    preset: str = "test"
    gpus: int = 4
    batch: int | None = None
    epochs: int | None = None
    learning_rate: float = 1e-5
    max_length: int = MAX_LENGTH
    validation: bool = False
    offload: bool = False
    checkpointing: bool = True
    evaluations: tuple[Evaluation, ...] = ()
    eval_engine: str = "vllm"

    def __post_init__(self) -> None:
        choices = {"verl": VERSIONS, "preset": tuple(SFT_PRESETS), "eval_engine": EVAL_ENGINES}
        for name, allowed in choices.items():
            if getattr(self, name) not in allowed:
                raise ValueError(
                    f"{option_of(name)}={getattr(self, name)!r} is not one of {', '.join(allowed)}"
                )
        if not self.model or not self.model.isprintable():
            raise ValueError(f"--model={self.model!r} is neither a path nor the name of a model")
        sizes = {
            "gpus": self.gpus,
            "batch": self.games,
            "epochs": self.passes,
            "max_length": self.max_length,
        }
        for name, size in sizes.items():
            if size < 1:
                raise ValueError(f"{option_of(name)}={size} should be at least 1")
        if not 0 < self.learning_rate < 1:
            raise ValueError(f"--learning-rate={self.learning_rate:g} should be above 0 and below 1")
        if self.offload and self.verl == "0.7":
            raise ValueError(
                "verl 0.7 cannot train on after it saved an offloaded model, because it leaves the model on "
                "the GPU: do not offload, or use a later verl"
            )
        if self.games % self.gpus:
            raise ValueError(
                f"--gpus={self.gpus} does not divide the batch of {self.games} games, as verl requires"
            )

    @property
    def games(self) -> int:
        """Games in a step."""
        return SFT_PRESETS[self.preset].batch if self.batch is None else self.batch

    @property
    def passes(self) -> int:
        """Passes over the games."""
        return SFT_PRESETS[self.preset].epochs if self.epochs is None else self.epochs
