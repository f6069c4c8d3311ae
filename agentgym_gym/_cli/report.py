"""``agentgym report``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from agentgym_gym._cli.console import out
from agentgym_gym.evaluate._report import write_report

__all__ = ["report"]


def report(
    runs: Annotated[
        list[Path],
        typer.Argument(metavar="RUN", help="Folders of runs or trainings, or with such below them."),
    ],
    *,
    out_: Annotated[Path, typer.Option("--out", help="The file; a report that is there is replaced.")] = Path(
        "report.html"
    ),
    title: Annotated[
        str | None, typer.Option(help="What stands above it; by default, who played what.")
    ] = None,
    last: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="STEPS",
            help="Of how many steps of a training, its last ones, the episodes are in the page; by default "
            "of all. Its charts are of all steps.",
        ),
    ] = None,
) -> None:
    """Write a page that shows runs and every episode of them.

    It is one file, which a browser opens without a server and without a network.
    """
    written = write_report(runs, out_, title=title, last=last)
    counts = f"{_counted(written.runs, 'run')}, {_counted(written.episodes, 'episode')}"
    out.print(f"Written to {written.path}: {counts}, {written.size / 1e6:.1f} MB.", soft_wrap=True)


def _counted(number: int, what: str) -> str:
    return f"{number:,} {what}" + "s" * (number != 1)
