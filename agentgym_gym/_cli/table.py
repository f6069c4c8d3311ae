"""``agentgym table``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from agentgym_gym._cli.completion import complete_run
from agentgym_gym._cli.console import out as console
from agentgym_gym._cli.tables import TableFormat, print_runs, render
from agentgym_gym._files import replaces
from agentgym_gym.errors import BadOption
from agentgym_gym.evaluate import find_runs, read_run
from agentgym_gym.evaluate._figures.table import table_of

__all__ = ["table"]

_SUFFIXES: dict[str, TableFormat] = {".md": "markdown", ".csv": "csv", ".tex": "latex"}


def table(
    runs: Annotated[
        list[Path],
        typer.Argument(metavar="RUN", help="folders of one or several runs", autocompletion=complete_run),
    ],
    *,
    format_: Annotated[
        TableFormat | None,
        typer.Option("--format", help="output format", show_default="by the suffix of --out, else text"),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="output file; replaces an existing file", show_default="the terminal")
    ] = None,
) -> None:
    """Print the results of runs as a table, also for a paper.

    The first table has success with its 95 % interval by environment and model, and pass@k if there are
    several samples. The second has all metrics of each run. Different worlds, and different splits, are
    different rows. CSV has one row per run with unrounded numbers. LaTeX requires the package booktabs.
    """
    folders = dict.fromkeys(folder.resolve() for path in runs for folder in find_runs(path))
    result = table_of(read_run(folder) for folder in folders)
    chosen = format_ or _SUFFIXES.get(out.suffix.lower() if out else "", "text")
    if out is None:
        if chosen == "text":
            print_runs(result)
        else:
            typer.echo(render(result, chosen), nl=False)
        return
    try:
        with replaces(out) as part:
            part.write_text(render(result, chosen), encoding="utf-8", newline="\n")
    except OSError as error:
        raise BadOption(f"cannot write to {out}: {error.strerror or error}") from error
    console.print(f"Written to {out}.", soft_wrap=True)
