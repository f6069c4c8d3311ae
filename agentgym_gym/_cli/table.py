"""``agentgym table``."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from agentgym_gym._cli.completion import complete_run
from agentgym_gym._cli.console import clean, err
from agentgym_gym._cli.console import out as console
from agentgym_gym._cli.tables import TableFormat, print_runs, render
from agentgym_gym._files import replaces
from agentgym_gym.errors import BadOption
from agentgym_gym.evaluate import RunResult, Summary, find_runs, read_run, summarise
from agentgym_gym.evaluate._figures.prices import price_of, read_prices
from agentgym_gym.evaluate._table import table_of

__all__ = ["table"]

_SUFFIXES: dict[str, TableFormat] = {".md": "markdown", ".csv": "csv", ".tex": "latex", ".json": "json"}


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
    prices: Annotated[
        Path | None,
        typer.Option(
            help="TOML or JSON file with prices per million tokens", show_default="the recorded costs"
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="print JSON, as --format json")] = False,
) -> None:
    """Print the results of runs as a table, also for a paper.

    The first table has success with its 95 % interval by environment and model, and pass@k if there are
    several samples. The second has all metrics of each run. Different worlds, and different splits, are
    different rows. CSV and JSON have one row per run with unrounded numbers. LaTeX requires the package
    booktabs. With --prices, costs are computed from the recorded tokens.
    """
    folders = dict.fromkeys(folder.resolve() for path in runs for folder in find_runs(path))
    result = table_of(*_priced([read_run(folder) for folder in folders], prices))
    if as_json and format_ is not None:
        raise BadOption("--json and --format exclude each other: give one of them")
    chosen = "json" if as_json else format_ or _SUFFIXES.get(out.suffix.lower() if out else "", "text")
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
    console.print(f"Written to {out}.")


def _priced(runs: list[RunResult], path: Path | None) -> tuple[list[RunResult], list[Summary]]:
    """Return runs and their metrics; a price in the file replaces the recorded cost of a run.

    Raises:
        BadOption: The file is not a price table.
    """
    table = {} if path is None else read_prices(path)
    prices = [price_of(run.agent, table) for run in runs]
    unpriced = dict.fromkeys(run.agent for run, price in zip(runs, prices, strict=True) if price is None)
    if path is not None and unpriced:
        err.print(clean(f"{path} has no price of {', '.join(unpriced)}"))
    summaries = [summarise(run.records, price) for run, price in zip(runs, prices, strict=True)]
    kept = [
        run if price is None else replace(run, cost=None) for run, price in zip(runs, prices, strict=True)
    ]
    return kept, summaries
