"""Find what an earlier training left in a folder: verl resumes from its checkpoints."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from verl_bridge.recipes._finding import Finding, warning

if TYPE_CHECKING:
    from verl_bridge.recipes._verl_settings import RlSettings, SftSettings

__all__ = ["EarlierRun", "check_earlier_run", "find_earlier_run", "last_step"]

_LATEST = "latest_checkpointed_iteration.txt"
_STEP = re.compile(r"global_step_(\d+)")


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


def find_earlier_run(
    folder: Path, settings: RlSettings | SftSettings, arguments: Mapping[str, Any]
) -> EarlierRun:
    """Return what an earlier training left in a folder.

    Args:
        folder: The folder.
        settings: Its settings.
        arguments: The arguments of its loop.
    """
    checkpoints = next(iter(settings.checkpoints), folder / "checkpoints")
    step = last_step(checkpoints)
    needed = (_LATEST, f"global_step_{step}")
    incomplete = next((name for name in needed if not (checkpoints / name).exists()), "")
    written = arguments.get("episodes_dir")
    episodes = folder / str(written) if written else None
    if episodes is not None and not any(episodes.glob("*.jsonl")):
        episodes = None
    return EarlierRun(checkpoints, step, incomplete, episodes)


def last_step(checkpoints: Path) -> int | None:
    """Return the step of the last checkpoint; None if there is none."""
    try:
        return int((checkpoints / _LATEST).read_text("utf-8").strip())
    except (OSError, ValueError):
        pass
    found = [_STEP.fullmatch(path.name) for path in checkpoints.glob("global_step_*") if path.is_dir()]
    return max((int(match[1]) for match in found if match), default=None)


def check_earlier_run(settings: RlSettings | SftSettings, earlier_run: EarlierRun) -> Iterator[Finding]:
    """Report the checkpoints and episodes of an earlier training."""
    mode, total = settings.resume, settings.steps
    folder, step, incomplete, episodes = earlier_run
    if step is not None and mode == "auto" and incomplete:
        yield warning(
            "checkpoints",
            f"{folder} has parts of an earlier training, but no {incomplete}: verl starts from step 1, "
            "and writes among them",
            "move the folder, or set trainer.default_local_dir to another",
        )
    elif step is not None and mode == "auto":
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
