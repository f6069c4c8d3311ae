"""Models that verl's FSDP saved in pieces, one for each GPU, made whole by verl's own ``model_merger``."""

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
"""Folder of the whole model, beside the pieces. ``huggingface``, which verl made, is left as it is."""

SHARDS = "model_world_size_*_rank_*.pt"
"""The pieces, as verl names them."""

_LOCK = ".merging.lock"
_PART = ".merging"

_LINES = 5


def merge_shards(folder: Path, tell: Callable[[str], object]) -> None:
    """Merge the pieces of a model below a checkpoint, if there are any and verl is installed.

    Other processes that want the same wait, and find it done. What is there is whole: the model is written
    into a folder that gets its name when it is complete. verl rounds the weights to bfloat16.

    Args:
        folder: A checkpoint, ``global_step_N``, or the folder ``actor`` in it.
        tell: Called with a line for the user before and after.

    Raises:
        SetupError: verl could not merge them, or the folder cannot be written to.
    """
    pieces = next((each for each in (folder, folder / "actor") if any(each.glob(SHARDS))), None)
    if pieces is None or importlib.util.find_spec("verl") is None:
        return
    target = pieces / MERGED
    try:
        with FileLock(pieces / _LOCK):
            if target.exists():
                return
            tell(f"{pieces} holds a model in pieces, which verl merges into {target}.")
            part = pieces / _PART
            shutil.rmtree(part, ignore_errors=True)  # of a process that was killed; nobody else has the lock
            try:
                _merge(pieces, part)
                part.rename(target)
            finally:
                shutil.rmtree(part, ignore_errors=True)
    except OSError as error:
        raise SetupError(f"cannot merge the model in {pieces}: {error.strerror or error}") from error
    tell(f"Merged into {target}.")


def _merge(pieces: Path, part: Path) -> None:
    command = [sys.executable, "-m", "verl.model_merger", "merge", "--backend", "fsdp"]
    command += ["--local_dir", str(pieces), "--target_dir", str(part)]
    # `python -m` puts the folder it runs in before all else; this process may have found verl elsewhere.
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    done = subprocess.run(  # noqa: S603 - verl's own command
        command, capture_output=True, text=True, errors="replace", check=False, env=environment
    )
    if done.returncode:
        last = " / ".join(deque(done.stderr.strip().splitlines(), _LINES)) or "it said nothing"
        raise SetupError(
            f"verl could not merge the model in {pieces}: {' '.join(last.split()):.1000}. By hand: "
            f"python -m verl.model_merger merge --backend fsdp --local_dir {pieces} "
            f"--target_dir {pieces / 'huggingface'}"
        )
    if (part / "lora_adapter").is_dir():
        raise SetupError(
            f"the model in {pieces} was trained by LoRA, and verl writes its adapter apart from it: merge "
            "the adapter into the model and save that"
        )
