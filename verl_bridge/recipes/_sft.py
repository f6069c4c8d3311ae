"""A fine-tuning run on whole games: its choices, and its folder."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal, NamedTuple, TypeAlias

from agentgym_gym.errors import BadOption
from agentgym_gym.options import Option, check_options
from agentgym_gym.rollout import split_id
from verl_bridge.recipes._filler import fill, read_template
from verl_bridge.recipes._folder import RELEASES, write_files
from verl_bridge.recipes._options import DEFAULT_MODEL, MACHINE, MODEL, TRAINING, Checkpointing, Gpus, Verl

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["SFT_PRESETS", "Evaluation", "SftPreset", "SftRecipe", "render_sft", "write_sft"]

_NAMES = ("config.yaml", "run.sh", "README.md", "data/train.parquet", "data/val.parquet")

MAX_LENGTH = 8_192
"""Default maximum tokens of a game; verl's default limit of tokens on a GPU at a time is the same."""


SftPresetName: TypeAlias = Literal["test", "full"]


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


SFT_PRESETS: Mapping[SftPresetName, SftPreset] = {
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
    """The choices of a fine-tuning run. The help of ``agentgym verl sft`` describes most of them.

    Attributes:
        name: The name of the run.
        validation: Whether there are games for validation.
        evaluations: The evaluations after the training.

    Raises:
        BadOption: A choice is invalid, or two choices contradict each other.
    """

    model: Annotated[str, Option(MODEL, TRAINING)] = DEFAULT_MODEL
    name: str = "sft"
    verl: Verl = "0.9"
    preset: Annotated[SftPresetName, Option("training size, which sets --batch and --epochs", TRAINING)] = (
        "test"
    )
    gpus: Gpus = 4
    batch: Annotated[
        int | None,
        Option("trajectories per training step", TRAINING, default="8 for test, 32 for full", least=1),
    ] = None
    epochs: Annotated[
        int | None,
        Option("passes over the trajectories", TRAINING, default="1 for test, 3 for full", least=1),
    ] = None
    learning_rate: Annotated[float, Option("learning rate", TRAINING)] = 1e-5
    max_length: Annotated[int, Option("maximum number of tokens per trajectory", TRAINING, least=1)] = (
        MAX_LENGTH
    )
    validation: bool = False
    offload: Annotated[
        bool,
        Option(
            "offload the optimizer and its parameters to CPU memory",
            MACHINE,
            flag="--offload/--no-offload",
        ),
    ] = False
    checkpointing: Checkpointing = True
    evaluations: tuple[Evaluation, ...] = ()
    eval_engine: Annotated[
        Literal["sglang", "vllm", "transformers"],
        Option("inference engine of the evaluation", "Evaluation after the training"),
    ] = "vllm"

    def __post_init__(self) -> None:
        check_options(self)
        if not self.model or not self.model.isprintable():
            raise BadOption("model", self.model, problem="is neither a path nor the name of a model")
        if not 0 < self.learning_rate < 1:
            raise BadOption("learning_rate", self.learning_rate, "above 0 and below 1")
        if self.offload and self.verl == "0.7":
            raise BadOption(
                "verl 0.7 cannot train on after it saved an offloaded model, because it leaves the model on "
                "the GPU: do not offload, or use a later verl"
            )
        if self.games % self.gpus:
            problem = f"does not divide the batch of {self.games} games, as verl requires"
            raise BadOption("gpus", self.gpus, problem=problem)

    @property
    def games(self) -> int:
        """Games in a step."""
        return SFT_PRESETS[self.preset].batch if self.batch is None else self.batch

    @property
    def passes(self) -> int:
        """Passes over the games."""
        return SFT_PRESETS[self.preset].epochs if self.epochs is None else self.epochs


def write_sft(recipe: SftRecipe, folder: Path, *, force: bool = False) -> list[Path]:
    """Write the folder of a fine-tuning run, except its data.

    Args:
        recipe: The recipe.
        folder: The target; created if it does not exist.
        force: Whether to replace existing files, including the data of an earlier run.

    Returns:
        The paths written.

    Raises:
        FileExistsError: One of the files exists and ``force`` is false; nothing was written.
        OSError: The folder cannot be written to.
    """
    return write_files(folder, render_sft(recipe), _NAMES, force=force)


def render_sft(recipe: SftRecipe) -> dict[str, str]:
    """Return the text of each file of a recipe's folder by its name.

    Args:
        recipe: The recipe.
    """
    often = SFT_PRESETS[recipe.preset].each_epoch
    values = {
        "batch": recipe.games,
        "checkpointing": recipe.checkpointing,
        "each_epoch": often,
        "epochs": recipe.passes,
        "evaluations": "\n".join(_command(each, recipe.eval_engine) for each in recipe.evaluations),
        "gpus": recipe.gpus,
        "learning_rate": recipe.learning_rate,
        "long": recipe.max_length > MAX_LENGTH,
        "max_length": recipe.max_length,
        "model": recipe.model,
        "name": recipe.name,
        "offload": recipe.offload,
        "package": shlex.quote(f"verl=={RELEASES[recipe.verl]}"),
        "validated_each_epoch": often and recipe.validation,
        "validation": recipe.validation,
        "verl": recipe.verl,
    }
    templates = {"config.yaml": "sft.yaml", "run.sh": "sft_run.sh", "README.md": "sft_README.md"}
    return {name: fill(read_template(template), values) for name, template in templates.items()}


def _command(evaluation: Evaluation, engine: str) -> str:
    """Return the line of the script that evaluates the last checkpoint in an environment."""
    name = split_id(evaluation.name)[1].rpartition("/")[2].replace(":", "_")
    words = ["-m", "agentgym_gym", "eval", evaluation.name, "--launch", engine, *evaluation.options]
    return (
        f'"$python" {shlex.join(words)} --model-path "checkpoints/global_step_$step" '
        f'--out {shlex.quote(f"eval/{name}")}/"global_step_$step" --resume'
    )
