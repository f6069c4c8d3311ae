"""Check a training folder before renting a GPU, as far as possible without one."""

from __future__ import annotations

from pathlib import Path

from verl_bridge.recipes import _check_lengths, _check_settings, _check_sft, _check_tasks
from verl_bridge.recipes._compose import SFT, base_of
from verl_bridge.recipes._finding import Finding, problem
from verl_bridge.recipes._view import NotReadable, View

__all__ = ["check"]


def check(folder: Path, *, timeout: float = 60.0) -> tuple[list[Finding], View | None]:
    """Check a folder.

    Each check covers as much as the installed packages allow, and reports the parts that it skipped.

    Args:
        folder: A folder made by :func:`verl_bridge.recipes.write` or :func:`verl_bridge.recipes.write_sft`.
        timeout: Seconds allowed for making an environment, for each reset and for each step.

    Returns:
        The findings, and the loaded folder, or None if it could not be read.

    Raises:
        ModuleNotFoundError: PyYAML is not installed.
    """
    try:
        view = View.of(folder)
    except NotReadable as error:
        return [problem("settings", str(error), "agentgym verl init or sft writes a folder")], None
    if base_of(view.raw) == SFT:
        return [*_check_settings.composed(view), *_check_sft.found(view)], view
    findings = [
        *_check_settings.composed(view),
        *_check_settings.arithmetic(view),
        *_check_tasks.read(view),
        *_check_settings.loop(view),
        *_check_settings.reward(view),
        *_check_tasks.apart(view),
        *_check_tasks.shared(view),
    ]
    played, starts = _check_tasks.played(view, timeout)
    return [*findings, *played, *_check_lengths.fit(view, starts)], view
