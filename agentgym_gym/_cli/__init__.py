"""The command line ``agentgym``, with one module for each command or group of commands."""

from __future__ import annotations

from typing import Annotated

import typer

import agentgym_gym
from agentgym_gym._cli import (
    audit,
    compare,
    doctor,
    envs,
    evaluate,
    export,
    leases,
    parse,
    play,
    reformat,
    report,
    rescore,
    serve,
    table,
    trajectories,
    validate,
)
from agentgym_gym._cli.console import Command
from agentgym_gym._cli.plugins import CommandGroup

__all__ = ["app"]

app = typer.Typer(
    cls=CommandGroup,
    context_settings={"help_option_names": ["--help", "-h"]},  # inherited by all commands
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # plain help does not vary with the width or the version of typer
)
app.command("envs", cls=Command)(envs.envs)
app.command("doctor", cls=Command)(doctor.doctor)
app.command("leases", cls=Command)(leases.leases)
app.command("serve", cls=Command)(serve.serve)
app.command("play", cls=Command)(play.play)
app.command("parse", cls=Command)(parse.parse)
app.command("eval", cls=Command)(evaluate.evaluate)
app.command("compare", cls=Command)(compare.compare)
app.command("table", cls=Command)(table.table)
app.command("rescore", cls=Command)(rescore.rescore)
app.command("validate", cls=Command)(validate.validate)
app.command("audit", cls=Command)(audit.audit)
app.command("report", cls=Command)(report.report)
app.command("view", cls=Command)(report.view)
app.command("export", cls=Command)(export.export)

data = typer.Typer(cls=CommandGroup, no_args_is_help=True, help="Write training files.")
data.command("sft", cls=Command)(trajectories.sft)
data.command("agenttraj", cls=Command)(trajectories.agenttraj)
data.command("reformat", cls=Command)(reformat.reformat)
app.add_typer(data, name="data")


def _show_version(requested: bool) -> None:
    if requested:
        typer.echo(f"agentgym-gym {agentgym_gym.__version__}")
        raise typer.Exit


@app.callback()
def _agentgym(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="print the version and exit"),
    ] = False,
) -> None:
    """Play AgentGym's environments, evaluate agents in them, and prepare training."""
