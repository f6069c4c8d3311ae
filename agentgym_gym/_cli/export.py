"""``agentgym export``: write runs in the format of another tool."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from agentgym_gym._cli.console import out as console
from agentgym_gym._cli.declared import command
from agentgym_gym._cli.options import RunFolders  # noqa: TC001 - typer reads it at run time
from agentgym_gym.evaluate import find_runs, read_run
from agentgym_gym.options import Option

__all__ = ["ExportOptions", "export"]


@dataclass(frozen=True, kw_only=True)
class ExportOptions:
    """The options of ``agentgym export``."""

    runs: RunFolders
    to: Annotated[Literal["inspect"], Option("target tool")]
    out: Annotated[Path, Option("output folder for the logs")]
    overwrite: Annotated[bool, Option("replace existing logs")] = False


@command(ExportOptions)
def export(options: ExportOptions) -> None:
    """Write runs in the format of another tool.

    With --to inspect, it writes logs for inspect_ai: view them with inspect view --log-dir FOLDER. A log has
    at most 1000 episodes; a longer run becomes several logs.
    """
    from agentgym_gym.evaluate._inspect_export import export_to_inspect  # noqa: PLC0415 - only for this command

    folders = dict.fromkeys(folder.resolve() for path in options.runs for folder in find_runs(path))
    runs = [read_run(folder) for folder in folders]
    for log in export_to_inspect(runs, options.out, overwrite=options.overwrite):
        console.print(f"Written to {log}.")
