"""``agentgym export``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from agentgym_gym._cli.console import out as console
from agentgym_gym.evaluate import find_runs, read_run

__all__ = ["export"]


def export(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN", help="Folders of runs, or of several runs.")],
    *,
    to: Annotated[Literal["inspect"], typer.Option(help="For which tool: inspect, of inspect_ai.")],
    out: Annotated[Path, typer.Option(help="Folder for the logs.")],
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Write over logs that are there.")] = False,
) -> None:
    """Write runs in the format of another tool.

    With inspect, the episodes are then shown by: inspect view --log-dir FOLDER. A log holds 1000 episodes at
    most, and a longer run becomes several.
    """
    from agentgym_gym.evaluate._inspect_export import export_to_inspect  # noqa: PLC0415 - for this command alone

    del to  # only one tool is supported
    folders = dict.fromkeys(folder.resolve() for path in runs for folder in find_runs(path))
    for log in export_to_inspect([read_run(folder) for folder in folders], out, overwrite=overwrite):
        console.print(f"Written to {log}.", soft_wrap=True)
