"""``agentgym view``."""

from __future__ import annotations

import contextlib
from typing import Annotated

import typer

from agentgym_gym._cli.console import out
from agentgym_gym._cli.report import LastSteps, RunPaths, Title  # noqa: TC001 - typer reads them
from agentgym_gym.evaluate._report.server import PageServer

__all__ = ["view"]


def view(
    runs: RunPaths,
    *,
    watch: Annotated[bool, typer.Option("--watch", help="show new episodes as runs go on")] = False,
    port: Annotated[int, typer.Option(min=0, max=65535, help="port to listen on (0 = any free port)")] = 0,
    title: Title = None,
    last: LastSteps = None,
) -> None:
    """Serve the report of runs on this machine until Ctrl-C.

    The page is that of agentgym report, at an address that only this machine can reach. The browser loads an
    episode when it is opened.
    """
    server = PageServer(runs, port=port, title=title, last=last, watch=watch)
    what = "Watching" if watch else "Serving"
    out.print(f"{what} {', '.join(map(str, runs))} on {server.url} until Ctrl-C.")
    with contextlib.suppress(KeyboardInterrupt):
        server.serve()
