"""Finds model folders that an engine can load, and the checkpoints of a training in order."""

from __future__ import annotations

import glob
import importlib.util
import os
import re
import shutil
import subprocess
import sys
from collections import deque
from collections.abc import Callable
from pathlib import Path

from filelock import FileLock

from agentgym_gym.errors import BadFile, BadOption, SetupError

__all__ = ["checkpoints", "model_folder"]

MERGED = "merged"
"""Folder of the merged model, next to the shards. verl's own folder ``huggingface`` is never changed."""

SHARDS = "model_world_size_*_rank_*.pt"
"""Glob pattern of the shard files, as verl names them."""

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
                _merge_shards(Path(path), merge)
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
        raise BadFile(
            f"there is no {path!r:.300}. Download a model of the Hugging Face hub first: "
            "hf download NAME --local-dir FOLDER",
            path=path,
        )
    folder = Path(path)
    if folder.is_file():
        return path
    layout = _layout(folder, weights=weights)
    if layout is None:
        raise BadFile(
            f"{path!r:.300} contains no model that can be loaded: {_describe_problem(folder)}", path=path
        )
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
        "it contains "
        + ", ".join(names[:SHOWN])
        + (f" and {len(names) - SHOWN} more" if names[SHOWN:] else "")
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


_LOCK = ".merging.lock"
_PART = ".merging"

_LINES = 5


def _merge_shards(folder: Path, report: Callable[[str], object]) -> None:
    """Merge the model shards of a checkpoint, if there are any and verl is installed.

    Concurrent processes wait on a lock for the first one, and then return at once. The merge is atomic: verl
    writes into a temporary folder, which is renamed when it is complete. verl rounds the weights to bfloat16.

    Args:
        folder: A checkpoint folder ``global_step_N``, or the folder ``actor`` in it.
        report: Called with a progress line for the user before and after the merge.

    Raises:
        SetupError: verl failed to merge the shards, or the folder is not writable.
    """
    shards = next((each for each in (folder, folder / "actor") if any(each.glob(SHARDS))), None)
    if shards is None or importlib.util.find_spec("verl") is None:
        return
    target = shards / MERGED
    try:
        with FileLock(shards / _LOCK):
            if target.exists():
                return
            report(f"{shards} contains model shards; verl merges them into {target}.")
            part = shards / _PART
            shutil.rmtree(part, ignore_errors=True)  # left by a killed process: this process has the lock
            try:
                _merge(shards, part)
                part.rename(target)
            finally:
                shutil.rmtree(part, ignore_errors=True)
    except OSError as error:
        raise SetupError(f"cannot merge the model in {shards}: {error.strerror or error}") from error
    report(f"Merged into {target}.")


def _merge(shards: Path, part: Path) -> None:
    command = [sys.executable, "-m", "verl.model_merger", "merge", "--backend", "fsdp"]
    command += ["--local_dir", str(shards), "--target_dir", str(part)]
    # `python -m` searches the working directory first; this process may import verl from elsewhere.
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    done = subprocess.run(  # noqa: S603 - verl's own command
        command, capture_output=True, text=True, errors="replace", check=False, env=environment
    )
    if done.returncode:
        last = " / ".join(deque(done.stderr.strip().splitlines(), _LINES)) or "no output"
        raise SetupError(
            f"verl could not merge the model in {shards}: {' '.join(last.split()):.1000}. By hand: "
            f"python -m verl.model_merger merge --backend fsdp --local_dir {shards} "
            f"--target_dir {shards / 'huggingface'}"
        )
    if (part / "lora_adapter").is_dir():
        raise SetupError(
            f"the model in {shards} was trained by LoRA, and verl writes its adapter separately: merge "
            "the adapter into the model and save that"
        )
