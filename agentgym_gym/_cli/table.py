"""``agentgym table``: print the results of runs as a table."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import typer

from agentgym_gym._cli.console import clean, err
from agentgym_gym._cli.console import out as console
from agentgym_gym._cli.declared import command
from agentgym_gym._cli.options import RunFolders  # noqa: TC001 - typer reads it at run time
from agentgym_gym._cli.table_formats import TableFormat, print_runs, render
from agentgym_gym._files import replaces
from agentgym_gym.errors import BadFile, BadOption
from agentgym_gym.evaluate import RunResult, Summary, find_runs, read_run, summarise
from agentgym_gym.evaluate._figures.prices import price_of, read_prices
from agentgym_gym.evaluate._table import table_of
from agentgym_gym.options import Option

__all__ = ["TableOptions", "table"]

_SUFFIXES: dict[str, TableFormat] = {".md": "markdown", ".csv": "csv", ".tex": "latex", ".json": "json"}


@dataclass(frozen=True, kw_only=True)
class TableOptions:
    """The options of ``agentgym table``."""

    runs: RunFolders
    format_: Annotated[
        TableFormat | None,
        Option("output format", default="by the suffix of --out, else text"),
    ] = None
    out: Annotated[Path | None, Option("output file; replaces an existing file", default="the terminal")] = (
        None
    )
    prices: Annotated[
        Path | None,
        Option("TOML or JSON file with prices per million tokens", default="the recorded costs"),
    ] = None
    as_json: Annotated[bool, Option("print JSON, as --format json", flag="--json")] = False


@command(TableOptions)
def table(options: TableOptions) -> None:
    """Print the results of runs as a table, also for a paper.

    The first table has success with its 95 % interval by environment and model, and pass@k if there are
    several samples. The second has all metrics of each run. Different worlds, and different splits, are
    different rows. CSV and JSON have one row per run with unrounded numbers. LaTeX requires the package
    booktabs. With --prices, costs are computed from the recorded tokens.
    """
    folders = dict.fromkeys(folder.resolve() for path in options.runs for folder in find_runs(path))
    result = table_of(*_priced([read_run(folder) for folder in folders], options.prices))
    if options.as_json and options.format_ is not None:
        raise BadOption("--json and --format exclude each other: give one of them")
    out, by_suffix = options.out, _SUFFIXES.get(options.out.suffix.lower() if options.out else "", "text")
    chosen = "json" if options.as_json else options.format_ or by_suffix
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
        raise BadFile(f"cannot write to {out}: {error.strerror or error}", path=out) from error
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
