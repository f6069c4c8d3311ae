"""Find what an earlier training left in a folder: verl resumes from its checkpoints."""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from verl_bridge.recipes._check_files import lookup
from verl_bridge.recipes._finding import Finding, warning

if TYPE_CHECKING:
    from verl_bridge.recipes._check_files import Settings

__all__ = ["EarlierRun", "check_earlier_run", "find_earlier_run", "refuse_other_run"]

_LATEST = "latest_checkpointed_iteration.txt"
_STEP = re.compile(r"global_step_(\d+)")
_FILES = ("config.yaml", "agent_loop.yaml", "interaction.yaml", "README.md")
_ENV_ID = re.compile(r"`([\w.]+:[\w.-]+/[\w.-]+-v\d+)`")


class EarlierRun(NamedTuple):
    """The files that an earlier training left.

    Attributes:
        checkpoints: The folder of its checkpoints.
        step: The step of its last checkpoint, or None if there is none.
        incomplete: The name of a missing file or folder without which verl does not resume; empty if it does.
        episodes: The folder of its episodes, or None.
    """

    checkpoints: Path
    step: int | None
    incomplete: str
    episodes: Path | None


def find_earlier_run(settings: Settings, arguments: Mapping[str, Any]) -> EarlierRun:
    """Return what an earlier training left in a folder.

    Args:
        settings: The settings of the folder.
        arguments: The arguments of its loop.
    """
    checkpoints = settings.path("trainer.default_local_dir") or settings.folder / "checkpoints"
    step = _last_step(checkpoints)
    needed = (_LATEST, f"global_step_{step}")
    incomplete = next((name for name in needed if not (checkpoints / name).exists()), "")
    written = arguments.get("episodes_dir")
    episodes = settings.folder / str(written) if written else None
    if episodes is not None and not any(episodes.glob("*.jsonl")):
        episodes = None
    return EarlierRun(checkpoints, step, incomplete, episodes)


def _last_step(checkpoints: Path) -> int | None:
    try:
        return int((checkpoints / _LATEST).read_text("utf-8").strip())
    except (OSError, ValueError):
        pass
    found = [_STEP.fullmatch(path.name) for path in checkpoints.glob("global_step_*") if path.is_dir()]
    return max((int(match[1]) for match in found if match), default=None)


def check_earlier_run(settings: Settings, earlier_run: EarlierRun) -> Iterator[Finding]:
    """Report the checkpoints and episodes of an earlier training."""
    mode = settings.get("trainer.resume_mode", "auto")
    folder, step, incomplete, episodes = earlier_run
    if step is not None and mode == "auto" and incomplete:
        yield warning(
            "checkpoints",
            f"{folder} has parts of an earlier training, but no {incomplete}: verl starts from step 1, "
            "and writes among them",
            "move the folder, or set trainer.default_local_dir to another",
        )
    elif step is not None and mode == "auto":
        total = settings.get("trainer.total_training_steps")
        done = f"; it has done all {total} training steps" if isinstance(total, int) and step >= total else ""
        yield warning(
            "checkpoints",
            f"{folder} has the checkpoints of an earlier training, and verl resumes from its step {step} "
            f"(trainer.resume_mode=auto){done}",
            "to start from the beginning, move the folder, or run run.sh trainer.resume_mode=disable",
        )
    elif step is not None and mode == "disable":
        yield warning(
            "checkpoints",
            f"{folder} has the checkpoints of an earlier training, which new ones replace step by step",
            "move the folder, or set trainer.default_local_dir to another",
        )
    if episodes is not None and (step is None or mode == "disable"):
        yield warning(
            "checkpoints",
            f"{episodes} has the episodes of an earlier training: reports will mix both",
            "move the folder, or set another episodes_dir in the yaml of the loop",
        )


def refuse_other_run(folder: Path, files: Mapping[str, str]) -> None:
    """Raise an error if a new recipe would continue from the checkpoints of another training.

    Args:
        folder: The folder, with the files of the earlier recipe.
        files: The texts of the new recipe by their names.

    Raises:
        FileExistsError: The earlier training had another environment, model or algorithm, or it is unknown.
    """
    checkpoints = folder / "checkpoints"
    step = _last_step(checkpoints)
    if step is None:
        return
    old = _identity({name: path.read_text("utf-8") for name in _FILES if (path := folder / name).is_file()})
    new = _identity(files)
    changes = [
        f"{name} {old.get(name) or 'unknown'}, now {new[name]}" for name in new if old.get(name) != new[name]
    ]
    if changes:
        raise FileExistsError(
            f"{checkpoints} has step {step} of another training ({'; '.join(changes)}), and verl would "
            "resume from its weights: move or delete the folder, or choose another --out"
        )


def _identity(files: Mapping[str, str]) -> dict[str, str]:
    """Return the environment, model and algorithm of a recipe by its files, as far as they can be read."""
    config = _yaml(files.get("config.yaml", ""))
    algorithm = lookup(config, "algorithm.adv_estimator")
    if algorithm is None:
        return {"model": str(lookup(config, "model.path")), "algorithm": "fine-tuning"}
    return {
        "environment": ", ".join(_environments(files)),
        "model": str(lookup(config, "actor_rollout_ref.model.path")),
        "algorithm": str(algorithm),
    }


def _environments(files: Mapping[str, str]) -> list[str]:
    """Return the ids of the environments; a recipe of several has them only in its README and its rows."""
    entries = _yaml(files.get("agent_loop.yaml", ""))
    interactions = _yaml(files.get("interaction.yaml", ""))
    if isinstance(interactions, Mapping):
        entries = [lookup(entry, "config") for entry in interactions.get("interaction") or ()]
    ids = [lookup(entry, "env_id") for entry in entries] if isinstance(entries, list) else []
    return sorted(
        {str(env_id) for env_id in ids if env_id} or set(_ENV_ID.findall(files.get("README.md", "")))
    )


def _yaml(text: str) -> Any:
    yaml = importlib.import_module("yaml")
    try:
        return yaml.safe_load(text)
    except yaml.YAMLError:
        return None
