"""``agentgym report``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from agentgym_gym._cli.completion import complete_run
from agentgym_gym._cli.console import out
from agentgym_gym.evaluate._report import write_report

__all__ = ["LastSteps", "RunPaths", "Title", "report"]


RunPaths: TypeAlias = Annotated[
    list[Path],
    typer.Argument(
        metavar="RUN",
        help="folders of runs or trainings, or their parent folders",
        autocompletion=complete_run,
    ),
]
Title: TypeAlias = Annotated[
    str | None, typer.Option(help="report title", show_default="agents and environments")
]
LastSteps: TypeAlias = Annotated[
    int | None,
    typer.Option(
        min=1,
        metavar="STEPS",
        help="number of last training steps whose episodes are included",
        show_default="all",
    ),
]


def report(
    runs: RunPaths,
    *,
    out_: Annotated[Path, typer.Option("--out", help="output file; replaces an existing report")] = Path(
        "report.html"
    ),
    title: Title = None,
    last: LastSteps = None,
) -> None:
    """Write a web page with the metrics and episodes of runs.

    The page is one file; a browser opens it without a server or network. With --last, the charts still show
    all steps of a training.
    """
    written = write_report(runs, out_, title=title, last=last)
    counts = f"{_count(written.runs, 'run')}, {_count(written.episodes, 'episode')}"
    out.print(f"Written to {written.path}: {counts}, {written.size / 1e6:.1f} MB.")


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}" + "s" * (number != 1)
