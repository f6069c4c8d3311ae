"""Print the results of ``agentgym eval``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from agentgym_gym._cli.console import clean, out
from agentgym_gym._cli.tables import print_run, print_runs
from agentgym_gym.evaluate import Run
from agentgym_gym.evaluate._figures.table import table_of

if TYPE_CHECKING:
    from agentgym_gym.evaluate._folder import RunFolder

__all__ = ["print_results"]


_COMMON_ENDINGS = frozenset({"terminated", "truncated", "fault", "agent_fault"})


def print_results(folders: Sequence[RunFolder]) -> None:
    """Print the metrics of runs, one row per run.

    Args:
        folders: The folders of the runs. If there are several, they have the same parent.
    """
    summaries = [folder.summary for folder in folders]
    table = table_of([_run(folder) for folder in folders], summaries)
    if len(folders) == 1:
        print_run(table.rows[0])
    else:
        print_runs(table)
    for folder, summary in zip(folders, summaries, strict=True):
        prefix = "" if len(folders) == 1 else f"{clean(_name(folder))}: "
        for kind, count in [*summary.faults.items(), *summary.agent_faults.items()]:
            out.print(f"{prefix}{count} ended by {kind}; not scored.")
        for ending, count in summary.endings.items():
            if ending not in _COMMON_ENDINGS:
                out.print(f"{prefix}{count} ended by {ending}.")
        if summary.samples > 1:
            solved = summary.solved
            out.print(
                f"{prefix}Tasks solved never {len(solved.never)}, sometimes {len(solved.sometimes)}, always "
                f"{len(solved.always)}.",
            )
    out.print(f"Written to {folders[0].path if len(folders) == 1 else folders[0].path.parent}.")


def _run(folder: RunFolder) -> Run:
    return Run(folder.path, {**folder.run, "wall_seconds": folder.seconds}, tuple(folder.records))


def _name(folder: RunFolder) -> str:
    run = _run(folder)
    return f"{run.env_label} by {run.agent}"
