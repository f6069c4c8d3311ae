"""``agentgym export``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from agentgym_gym._cli.completion import complete_run
from agentgym_gym._cli.console import out as console
from agentgym_gym.evaluate import find_runs, read_run

__all__ = ["export"]


def export(
    runs: Annotated[
        list[Path],
        typer.Argument(metavar="RUN", help="folders of one or several runs", autocompletion=complete_run),
    ],
    *,
    to: Annotated[Literal["inspect"], typer.Option(help="target tool")],
    out: Annotated[Path, typer.Option(help="output folder for the logs")],
    overwrite: Annotated[bool, typer.Option("--overwrite", help="replace existing logs")] = False,
) -> None:
    """Write runs in the format of another tool.

    With --to inspect, it writes logs for inspect_ai: view them with inspect view --log-dir FOLDER. A log has
    at most 1000 episodes; a longer run becomes several logs.
    """
    from agentgym_gym.evaluate._inspect_export import export_to_inspect  # noqa: PLC0415 - only for this command

    del to  # only one tool is supported
    folders = dict.fromkeys(folder.resolve() for path in runs for folder in find_runs(path))
    for log in export_to_inspect([read_run(folder) for folder in folders], out, overwrite=overwrite):
        console.print(f"Written to {log}.")
