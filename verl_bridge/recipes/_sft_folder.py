"""Writing the folder of a fine-tuning run."""

from __future__ import annotations

import shlex
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING

from agentgym_gym.rollout import split_id
from verl_bridge.recipes._compose import SFT
from verl_bridge.recipes._folder import RELEASES, put, template
from verl_bridge.recipes._settings import to_yaml
from verl_bridge.recipes._sft import sft_settings

if TYPE_CHECKING:
    from verl_bridge.recipes._sft import SftRecipe

__all__ = ["write_sft"]

_NAMES = ("config.yaml", "run.sh", "README.md", "data/train.parquet", "data/val.parquet")

_HEAD = f"""\
# verl $verl: fine-tuning on whole games.
# Only what differs from verl's own {SFT}.yaml, and what you may want to see. `bash run.sh` starts it.
hydra:
  searchpath:
    - pkg://verl.trainer.config

defaults:
  - {SFT}
  - _self_

# Where this folder is; run.sh says it.
folder: .
"""

_EVALUATE = """
# What was learned is played; an evaluation that was interrupted goes on.
step="$(cat checkpoints/latest_checkpointed_iteration.txt)"
"""

_ABOUT_EVALUATION = """
After the training `agentgym eval` plays the last checkpoint, and writes to `eval/`:

```console
agentgym report eval --out report.html
```
"""


def write_sft(recipe: SftRecipe, folder: Path, *, force: bool = False) -> list[Path]:
    """Write the folder of a fine-tuning run, but for its data.

    Args:
        recipe: The recipe.
        folder: Where to; made where there is none.
        force: Whether to replace files that are there, the data of an earlier run among them.

    Returns:
        The paths written.

    Raises:
        FileExistsError: One of the files is there and ``force`` is false; nothing was written.
        OSError: The folder cannot be written to.
    """
    values = {
        "verl": recipe.verl,
        "name": recipe.name,
        "model": recipe.model,
        "gpus": recipe.gpus,
        "package": shlex.quote(f"verl=={RELEASES[recipe.verl]}"),
        "evaluate": _evaluate(recipe),
        "about_evaluation": _ABOUT_EVALUATION if recipe.evaluations else "",
    }
    files = {
        "config.yaml": Template(_HEAD).substitute(values) + to_yaml(sft_settings(recipe)),
        "run.sh": Template(template("sft_run.sh")).substitute(values),
        "README.md": Template(template("sft_README.md")).substitute(values),
    }
    return put(folder, files, _NAMES, force=force)


def _evaluate(recipe: SftRecipe) -> str:
    """Return the lines of the script that play the last checkpoint."""
    lines = []
    for each in recipe.evaluations:
        name = split_id(each.name)[1].rpartition("/")[2].replace(":", "_")
        words = ["-m", "agentgym_gym", "eval", each.name, "--launch", recipe.eval_engine, *each.options]
        lines.append(
            f'"$python" {shlex.join(words)} --model-path "checkpoints/global_step_$step" '
            f'--out {shlex.quote(f"eval/{name}")}/"global_step_$step" --resume'
        )
    return _EVALUATE + "\n".join(lines) + "\n" if lines else ""
