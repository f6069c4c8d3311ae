"""Print the results of ``agentgym eval``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from agentgym_gym._cli.console import clean, out
from agentgym_gym._cli.tables import print_run, print_runs
from agentgym_gym.evaluate._table import table_of

if TYPE_CHECKING:
    from agentgym_gym.evaluate import RunResult

__all__ = ["print_results"]


_COMMON_ENDINGS = frozenset({"terminated", "truncated", "fault", "agent_fault"})


def print_results(results: Sequence[RunResult]) -> None:
    """Print the metrics of runs, one row per run.

    Args:
        results: The results of the runs. If there are several, their folders have the same parent.
    """
    summaries = [result.summary for result in results]
    table = table_of(results, summaries)
    if len(results) == 1:
        print_run(table.rows[0])
    else:
        print_runs(table)
    for result, summary in zip(results, summaries, strict=True):
        prefix = "" if len(results) == 1 else f"{clean(f'{result.env_label} by {result.agent}')}: "
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
    out.print(f"Written to {results[0].path if len(results) == 1 else results[0].path.parent}.")
