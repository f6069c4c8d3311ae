"""Print the results of ``agentgym eval``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from agentgym_gym._cli.console import clean, out, print_table
from agentgym_gym.evaluate import Run

if TYPE_CHECKING:
    from agentgym_gym.evaluate._figures.metrics import Summary
    from agentgym_gym.evaluate._folder import RunFolder

__all__ = ["print_results"]


_COMMON_ENDINGS = frozenset({"terminated", "truncated", "fault", "agent_fault"})


_OF_SEVERAL = frozenset({"episodes", "faulted", "success", "95 %", "score", "turns"})
"""The columns in a table of several runs, fewer than for one run to limit the width."""


def print_results(folders: Sequence[RunFolder]) -> None:
    """Print the metrics of runs, one row per run.

    Args:
        folders: The folders of the runs. If there are several, they have the same parent.
    """
    rows = [_row(folder.summary) for folder in folders]
    runs = [Run(folder.path, folder.run, tuple(folder.records)) for folder in folders]
    names = [clean(f"{run.env_label} by {run.agent}") for run in runs]
    if len(folders) == 1:
        print_table(list(rows[0]), [list(rows[0].values())], title=names[0])
    else:
        headings = [heading for heading in rows[0] if heading in _OF_SEVERAL or heading.startswith("pass")]
        cells = [
            [name, *(row.get(heading, "-") for heading in headings)]
            for name, row in zip(names, rows, strict=True)
        ]
        print_table(["run", *headings], cells, left={"run"})
    for name, folder in zip(names, folders, strict=True):
        prefix = "" if len(folders) == 1 else f"{name}: "
        summary = folder.summary
        for kind, count in [*summary.faults.items(), *summary.agent_faults.items()]:
            out.print(f"{prefix}{count} ended by {kind}; not scored.", soft_wrap=True)
        for ending, count in summary.endings.items():
            if ending not in _COMMON_ENDINGS:
                out.print(f"{prefix}{count} ended by {ending}.", soft_wrap=True)
        if summary.samples > 1:
            solved = summary.solved
            out.print(
                f"{prefix}Tasks solved never {len(solved.never)}, sometimes {len(solved.sometimes)}, always "
                f"{len(solved.always)}.",
                soft_wrap=True,
            )
        if line := _counters(summary.counters):
            out.print(f"{prefix}{line}", soft_wrap=True)
    out.print(
        f"Written to {folders[0].path if len(folders) == 1 else folders[0].path.parent}.", soft_wrap=True
    )


def _row(summary: Summary) -> dict[str, str]:
    share, k = summary.parse_error_share, summary.samples
    row = {
        "episodes": str(summary.episodes),
        "faulted": str(summary.faulted),
        "success": _decimal(summary.success_rate),
        "95 %": _interval(summary.success_interval),
        "score": _decimal(summary.mean_score),
    }
    if k > 1:
        row |= {f"pass@{k}": _decimal(summary.pass_at[k]), f"pass^{k}": _decimal(summary.pass_hat[k])}
    row |= {
        "turns": _decimal(summary.mean_turns),
        "parse errors": "-" if share is None else f"{share:.1%}",
    }
    if summary.tokens.completion is not None:
        row["tokens"] = f"{(summary.tokens.prompt or 0) + summary.tokens.completion:,}"
    if summary.cost is not None:
        row["cost"] = _decimal(summary.cost)
    return row | {"seconds": f"{summary.seconds:.1f}"}


def _interval(interval: tuple[float, float] | None) -> str:
    return "-" if interval is None else "{:.2f} to {:.2f}".format(*interval)


def _counters(counters: Mapping[str, Any]) -> str:
    """Return the metrics of the connections as one line; empty if there were no requests."""
    if not counters["requests"]:
        return ""
    parts = [f"{counters['requests']} requests"]
    if counters["retries"]:
        parts.append(f"{counters['retries']} of them retries")
    if counters["reconnects"]:
        parts.append(f"{counters['reconnects']} reconnects")
    if counters["faults"]:
        parts.append("faults: " + ", ".join(f"{n} {kind}" for kind, n in sorted(counters["faults"].items())))
    if counters["queued"]:
        parts.append(f"{counters['queued']:.1f} seconds queued")
    if counters["uncounted"]:
        parts.append(f"{counters['uncounted']} of {counters['episodes']} episodes not counted")
    return "; ".join(parts) + "."


def _decimal(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"
