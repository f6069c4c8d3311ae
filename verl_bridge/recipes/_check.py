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
        return [
            problem("settings", str(error), "write a folder with agentgym verl init or agentgym verl sft")
        ], None
    if base_of(view.raw) == SFT:
        return [*_check_settings.check_composition(view), *_check_sft.check_sft(view)], view
    findings = [
        *_check_settings.check_composition(view),
        *_check_settings.check_sizes(view),
        *_check_tasks.read_rows(view),
        *_check_settings.check_loop(view),
        *_check_settings.check_reward(view),
        *_check_tasks.check_split_leakage(view),
        *_check_tasks.check_shares(view),
    ]
    played, starts = _check_tasks.play_first_turns(view, timeout)
    return [*findings, *played, *_check_lengths.check_lengths(view, starts)], view
