"""Merges model checkpoints that verl saved as FSDP shards, one for each GPU, with verl's ``model_merger``."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from collections import deque
from collections.abc import Callable
from pathlib import Path

from filelock import FileLock

from agentgym_gym.errors import SetupError

__all__ = ["MERGED", "SHARDS", "merge_shards"]

MERGED = "merged"
"""Folder of the merged model, beside the shards. verl's own folder ``huggingface`` is never changed."""

SHARDS = "model_world_size_*_rank_*.pt"
"""Glob pattern of the shard files, as verl names them."""

_LOCK = ".merging.lock"
_PART = ".merging"

_LINES = 5


def merge_shards(folder: Path, report: Callable[[str], object]) -> None:
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
