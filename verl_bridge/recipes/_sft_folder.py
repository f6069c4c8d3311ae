"""Write the folder of a fine-tuning run."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from agentgym_gym.rollout import split_id
from verl_bridge.recipes._filler import fill, read_template
from verl_bridge.recipes._folder import RELEASES, write_files
from verl_bridge.recipes._sft import MAX_LENGTH, SFT_PRESETS

if TYPE_CHECKING:
    from pathlib import Path

    from verl_bridge.recipes._sft import Evaluation, SftRecipe

__all__ = ["render_sft", "write_sft"]

_NAMES = ("config.yaml", "run.sh", "README.md", "data/train.parquet", "data/val.parquet")


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
