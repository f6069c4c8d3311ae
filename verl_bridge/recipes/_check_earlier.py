"""Find what an earlier training left in a folder: verl resumes from its checkpoints."""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from verl_bridge.recipes._finding import Finding, warning

if TYPE_CHECKING:
    from pathlib import Path

    from verl_bridge.recipes._view import View

__all__ = ["check_earlier_run", "last_step", "refuse_other_run"]

_LATEST = "latest_checkpointed_iteration.txt"
_STEP = re.compile(r"global_step_(\d+)")
_FILES = ("config.yaml", "agent_loop.yaml", "interaction.yaml", "README.md")
_ENV_ID = re.compile(r"`([\w.]+:[\w.-]+/[\w.-]+-v\d+)`")


def last_step(checkpoints: Path) -> int | None:
    """Return the step of the last checkpoint in a folder, or None if there is none."""
    try:
        return int((checkpoints / _LATEST).read_text("utf-8").strip())
    except (OSError, ValueError):
        pass
    found = [_STEP.fullmatch(path.name) for path in checkpoints.glob("global_step_*") if path.is_dir()]
    return max((int(match[1]) for match in found if match), default=None)


def check_earlier_run(view: View) -> Iterator[Finding]:
    """Report the checkpoints and episodes of an earlier training."""
    mode = view.get("trainer.resume_mode", "auto")
    folder = view.path("trainer.default_local_dir") or view.folder / "checkpoints"
    step = last_step(folder)
    if step is not None:
        if mode == "auto":
            yield from _resumed(view, folder, step)
        elif mode == "disable":
            yield warning(
                "checkpoints",
                f"{folder} has the checkpoints of an earlier training, which new ones replace step by step",
                "move the folder, or set trainer.default_local_dir to another",
            )
    episodes = view.arguments().get("episodes_dir")
    kept = view.folder / str(episodes) if episodes else None
    if kept is not None and any(kept.glob("*.jsonl")) and (step is None or mode == "disable"):
        yield warning(
            "checkpoints",
            f"{kept} has the episodes of an earlier training: reports will mix both",
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
    step = last_step(checkpoints)
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
    config = config if isinstance(config, Mapping) else {}
    algorithm = _within(config, "algorithm", "adv_estimator")
    if algorithm is None:
        return {"model": str(_within(config, "model", "path")), "algorithm": "fine-tuning"}
    return {
        "environment": ", ".join(_environments(files)),
        "model": str(_within(config, "actor_rollout_ref", "model", "path")),
        "algorithm": str(algorithm),
    }


def _environments(files: Mapping[str, str]) -> list[str]:
    """Return the ids of the environments; a recipe of several has them only in its README and its rows."""
    entries = _yaml(files.get("agent_loop.yaml", ""))
    interactions = _yaml(files.get("interaction.yaml", ""))
    if isinstance(interactions, Mapping):
        entries = [_within(entry, "config") for entry in interactions.get("interaction") or ()]
    ids = [_within(entry, "env_id") for entry in entries] if isinstance(entries, list) else []
    return sorted(
        {str(env_id) for env_id in ids if env_id} or set(_ENV_ID.findall(files.get("README.md", "")))
    )


def _yaml(text: str) -> Any:
    yaml = importlib.import_module("yaml")
    try:
        return yaml.safe_load(text)
    except yaml.YAMLError:
        return None


def _within(value: Any, *keys: str) -> Any:
    for key in keys:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value


def _resumed(view: View, folder: Path, step: int) -> Iterator[Finding]:
    if not (folder / _LATEST).is_file() or not (folder / f"global_step_{step}").is_dir():
        missing = f"global_step_{step}" if (folder / _LATEST).is_file() else _LATEST
        yield warning(
            "checkpoints",
            f"{folder} has parts of an earlier training, but no {missing}: verl starts from step 1, "
            "and writes among them",
            "move the folder, or set trainer.default_local_dir to another",
        )
        return
    total = view.get("trainer.total_training_steps")
    then = f"; it has done all {total} training steps" if isinstance(total, int) and step >= total else ""
    yield warning(
        "checkpoints",
        f"{folder} has the checkpoints of an earlier training, and verl resumes from its step {step} "
        f"(trainer.resume_mode=auto){then}",
        "to start from the beginning, move the folder, or run run.sh trainer.resume_mode=disable",
    )
