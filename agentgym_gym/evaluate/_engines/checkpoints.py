"""Finds model folders that an engine can load, and the checkpoints of a training in order."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Callable
from pathlib import Path

from agentgym_gym.errors import BadOption
from agentgym_gym.evaluate._engines.merging import MERGED, SHARDS, merge_shards

__all__ = ["checkpoints", "model_folder"]

# Where verl saves a model in Hugging Face format, below `global_step_N`: the RL trainers with FSDP and with
# Megatron, then the SFT trainer. The model folder itself comes first, merged shards last.
LAYOUTS = (
    "",
    "actor/huggingface",
    "actor/model/huggingface",
    "huggingface",
    "model/huggingface",
    *(f"{place}{MERGED}" for place in ("actor/", "")),
)

CONFIGS = ("config.json", "params.json")
"""Config files of a model, in Hugging Face format and in Mistral's format."""

WEIGHTS = ("*.safetensors", "pytorch_model*.bin", "consolidated*.pth", "*.gguf")

SHOWN = 8
"""Number of file names that an error lists."""


def checkpoints(pattern: str, *, merge: Callable[[str], object] | None = None) -> list[str]:
    """Return the models whose paths match a pattern, in natural order: ``step_2`` before ``step_10``.

    Files are skipped, and so are symbolic links to other matches. In a checkpoint folder of verl, the model
    in Hugging Face format is selected.

    Args:
        pattern: A path, or a shell pattern such as ``ckpts/*``.
        merge: Merge checkpoints that contain only FSDP shards, if verl is installed; called with a progress
            line for the user before and after each merge. None does not merge.

    Returns:
        Folders with a model and its weights; at least one.

    Raises:
        BadOption: Nothing matches, or a match contains no model; the message lists the contents.
        SetupError: A checkpoint could not be merged.
    """
    matched = [pattern] if os.path.exists(pattern) else glob.glob(pattern)  # noqa: PTH110, PTH207 - '[' in a name
    folders = sorted((path for path in matched if Path(path).is_dir()), key=_natural_key)
    if not folders:
        raise BadOption(
            f"{pattern!r:.300} matches no folder of a model: {_describe_matches(pattern, matched)}"
        )
    real = {Path(path).resolve() for path in folders if not Path(path).is_symlink()}
    kept = [path for path in folders if not Path(path).is_symlink() or Path(path).resolve() not in real]
    if merge is not None:
        for path in kept:
            if _layout(Path(path), weights=True) is None:
                merge_shards(Path(path), merge)
    return [model_folder(path, weights=True) for path in kept]


def model_folder(path: str, *, weights: bool = False) -> str:
    """Return the folder that an engine can load: the path itself, or the folder below it from verl.

    Args:
        path: A folder. A file, such as a GGUF file, is returned unchanged.
        weights: Whether to require the weights too.

    Raises:
        BadOption: The path does not exist or contains no model; the message lists the contents.
    """
    if not os.path.lexists(path):
        raise BadOption(
            f"there is no {path!r:.300}. Download a model of the Hugging Face hub first: "
            "hf download NAME --local-dir FOLDER"
        )
    folder = Path(path)
    if folder.is_file():
        return path
    layout = _layout(folder, weights=weights)
    if layout is None:
        raise BadOption(f"{path!r:.300} holds no model that can be loaded: {_describe_problem(folder)}")
    return os.path.join(path, layout) if layout else path  # noqa: PTH118 - keeps the caller's spelling


def _layout(folder: Path, *, weights: bool) -> str | None:
    """Return the relative path of the model below a folder, or None."""
    layouts = _layouts_with_config(folder)
    whole = [layout for layout in layouts if any(any((folder / layout).glob(each)) for each in WEIGHTS)]
    return next(iter(whole or ([] if weights else layouts)), None)


def _layouts_with_config(folder: Path) -> list[str]:
    return [layout for layout in LAYOUTS if any((folder / layout / name).is_file() for name in CONFIGS)]


def _describe_problem(folder: Path) -> str:
    """Describe the contents of a folder without a loadable model, and how to fix it."""
    layouts = _layouts_with_config(folder)
    for actor in (folder, folder / "actor"):
        if any(actor.glob(SHARDS)) or (actor / "dist_ckpt").is_dir():
            return (
                f"verl saved the weights in {actor} in its own format. Merge them: "
                "python -m verl.model_merger merge --backend fsdp (or megatron) "
                f"--local_dir {actor} --target_dir {actor / 'huggingface'}. "
                "With 'hf_model' in actor_rollout_ref.actor.checkpoint.save_contents, verl saves both formats"
            )
    if (folder / "adapter_config.json").is_file():
        return "it is an adapter (adapter_config.json); merge it into its model and save that"
    if layouts:
        return f"{folder / layouts[0]} has a config.json, but no weights such as *.safetensors"
    return f"no config.json, and {_list_contents(folder)}"


def _list_contents(folder: Path) -> str:
    try:
        names = sorted((each.name + "/" * each.is_dir() for each in folder.iterdir()), key=_natural_key)
    except OSError as error:
        return f"it cannot be read: {error.strerror}"
    if not names:
        return "it is empty"
    return (
        "it holds " + ", ".join(names[:SHOWN]) + (f" and {len(names) - SHOWN} more" if names[SHOWN:] else "")
    )


def _describe_matches(pattern: str, matched: list[str]) -> str:
    """Describe the existing files for a pattern that matches no folder."""
    if matched:
        return f"it matches only files, such as {min(matched, key=_natural_key)!r:.300}"
    folder = Path(pattern)
    while not folder.is_dir():
        folder = folder.parent
    return f"nothing does; in {os.fspath(folder)!r:.300}, {_list_contents(folder)}"


def _natural_key(path: str) -> list[str | int]:
    # Text and numbers alternate, so each part is compared with a part of the same type.
    parts = re.split(r"([0-9]{1,18})", path)
    return [int(part) if index % 2 else part for index, part in enumerate(parts)]
