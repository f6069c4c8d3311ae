"""``agentgym report`` and ``agentgym view``: the web page of runs, as a file or from a server."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, TypeAlias

from agentgym_gym._cli.console import out
from agentgym_gym._cli.declared import command
from agentgym_gym.evaluate._report import write_report
from agentgym_gym.evaluate._report.server import PageServer
from agentgym_gym.options import Option

__all__ = ["LastSteps", "ReportOptions", "RunPaths", "Title", "ViewOptions", "report", "view"]


RunPaths: TypeAlias = Annotated[
    list[Path],
    Option(
        "folders of runs or trainings, or their parent folders",
        positional=True,
        metavar="RUN",
        completes="run",
    ),
]
Title: TypeAlias = Annotated[str | None, Option("report title", default="agents and environments")]
LastSteps: TypeAlias = Annotated[
    int | None,
    Option(
        "number of last training steps whose episodes are included", least=1, metavar="STEPS", default="all"
    ),
]


@dataclass(frozen=True, kw_only=True)
class ReportOptions:
    """The options of ``agentgym report``."""

    runs: RunPaths
    out_: Annotated[Path, Option("output file; replaces an existing report")] = Path("report.html")
    title: Title = None
    last: LastSteps = None


@command(ReportOptions)
def report(options: ReportOptions) -> None:
    """Write a web page with the metrics and episodes of runs.

    The page is one file; a browser opens it without a server or network. With --last, the charts still show
    all steps of a training.
    """
    written = write_report(options.runs, options.out_, title=options.title, last=options.last)
    counts = f"{_count(written.runs, 'run')}, {_count(written.episodes, 'episode')}"
    out.print(f"Written to {written.path}: {counts}, {written.size / 1e6:.1f} MB.")


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}" + "s" * (number != 1)


@dataclass(frozen=True, kw_only=True)
class ViewOptions:
    """The options of ``agentgym view``."""

    runs: RunPaths
    watch: Annotated[bool, Option("show new episodes as runs go on")] = False
    port: Annotated[int, Option("port to listen on (0 = any free port)", least=0, most=65535)] = 0
    title: Title = None
    last: LastSteps = None


@command(ViewOptions)
def view(options: ViewOptions) -> None:
    """Serve the report of runs on this machine until Ctrl-C.

    The page is that of agentgym report, at an address that only this machine can reach. The browser loads an
    episode when it is opened.
    """
    server = PageServer(
        options.runs, port=options.port, title=options.title, last=options.last, watch=options.watch
    )
    what = "Watching" if options.watch else "Serving"
    out.print(f"{what} {', '.join(map(str, options.runs))} on {server.url} until Ctrl-C.")
    with contextlib.suppress(KeyboardInterrupt):
        server.serve()
