"""Play the runs of ``agentgym eval``, with their progress, and print their results."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from agentgym_gym._cli.console import ERROR, err, report
from agentgym_gym._cli.eval_end import print_closing, print_results
from agentgym_gym._cli.progress import Progress
from agentgym_gym.errors import BadOption, SetupError
from agentgym_gym.evaluate._interrupts import INTERRUPTED
from agentgym_gym.evaluate._play import PlayedRuns, play_runs

if TYPE_CHECKING:
    from agentgym_gym.evaluate import Run, RunLimits
    from agentgym_gym.rollout._records import EpisodeRecord

__all__ = ["play_and_print"]


def play_and_print(
    runs: Sequence[Run],
    limits: RunLimits,
    *,
    out: Path | None,
    ray: str | None,
    resume: bool,
    retry_faulted: bool,
    yes: bool,
) -> None:
    """Play runs and print their results.

    Args:
        runs: The runs.
        limits: The limits that all runs share.
        out: Output folder; None for a new one.
        ray: Address of a Ray cluster; None to play in this process.
        resume: Whether to resume existing runs in the folders.
        retry_faulted: Whether to retry faulted episodes of resumed runs.
        yes: Whether models may play any number of episodes without a confirmation.

    Raises:
        typer.Exit: The runs were not played to their end, or a fault ended each episode.
        SetupError: The setup must change before the runs can continue.
    """
    began = time.monotonic()
    played = play_runs(
        runs,
        limits,
        out=out,
        resume=resume,
        retry_faulted=retry_faulted,
        ray=ray,
        watcher=_Terminal(yes=yes),
    )
    results = [folder.result for folder in played.folders]
    print_results(results)
    print_closing(
        results,
        time.monotonic() - began,
        raised=_option(played.stopped_by),
        out=played.out if out is None else None,
    )
    _exit(played)
    if any(result.summary.episodes for result in results) and not any(
        result.summary.scored for result in results
    ):
        raise typer.Exit(1)


@dataclass(frozen=True)
class _Terminal:
    """Shows runs on the terminal while they are played."""

    yes: bool

    def confirm(self, episodes: int) -> None:
        """Request a confirmation before models play very many episodes.

        Raises:
            BadOption: Standard input is not a terminal, so no confirmation is possible.
            typer.Abort: The user does not confirm.
        """
        if self.yes:
            return
        what = f"{episodes:,} episodes of a model"
        if not sys.stdin.isatty():
            raise BadOption(
                f"this run has {what}, and there is no terminal to confirm them: give --yes to play them "
                "all, or --limit N for the first N tasks"
            )
        typer.confirm(f"This run has {what}. Play them all?", abort=True, err=True)

    def warn(self, text: str) -> None:
        """Print a warning."""
        err.print(text)

    @contextlib.contextmanager
    def watch(
        self, before: Sequence[EpisodeRecord], left: int, state: Callable[[], Sequence[str]]
    ) -> Iterator[Callable[[EpisodeRecord], object]]:
        """Show the progress."""
        with Progress(before, left, state=state) as progress:
            yield progress.note


def _option(limit: str | None) -> str:
    return "" if limit is None else f"--{limit.replace('_', '-')}"


def _exit(played: PlayedRuns) -> None:
    """Print why the runs ended and end the command, unless all episodes were played.

    Raises:
        typer.Exit: There is a reason.
        SetupError: The setup must change before the runs can continue.
    """
    problem = played.problem
    if problem is None:
        return
    if isinstance(problem, KeyboardInterrupt):
        err.print("Interrupted; give --resume to continue the run.")
        raise typer.Exit(INTERRUPTED)
    if played.stopped_by is not None and isinstance(problem, SetupError):
        reason = problem.renamed({played.stopped_by: _option(played.stopped_by)})
        err.print(f"Stopped: {reason}. Unfinished episodes were discarded.")
        raise typer.Exit(1)
    if isinstance(problem, SetupError):
        raise problem
    report(f"{problem}. The episodes are kept; give --resume --retry-faulted to continue")
    raise typer.Exit(ERROR)
