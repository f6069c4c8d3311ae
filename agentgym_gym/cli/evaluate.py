"""``agentgym eval``."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import gymnasium
import typer
from rich import box
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from agentgym_gym import evaluate as evaluation
from agentgym_gym._http.limits import DEFAULT_TIMEOUT
from agentgym_gym._text import redact
from agentgym_gym.catalogue import find
from agentgym_gym.cli.console import err, out
from agentgym_gym.cli.options import (
    ActionFormat,
    Header,
    MaxTurns,
    OnUnknown,
    Parser,
    Timeout,
    headers_of,
)
from agentgym_gym.cli.sources import probe
from agentgym_gym.errors import NoServer

if TYPE_CHECKING:
    from collections.abc import Callable

    from agentgym_gym.catalogue import Environment
    from agentgym_gym.env import AgentGymEnv
    from agentgym_gym.evaluate import EpisodeRecord, RunFolder, Summary

__all__ = ["evaluate"]

_INTERRUPTED = 130  # the status a shell gives a command that Ctrl-C ended


def evaluate(
    name: Annotated[str, typer.Argument(metavar="ID", help="Which environment: its id or its name.")],
    *,
    agent: Annotated[
        str, typer.Option(help="Who plays: oracle, random, or replay:FILE, an earlier episodes.jsonl.")
    ],
    tasks: Annotated[
        str, typer.Option(help="Which tasks: 0:50, 3, 1,2,5, 10: or all; a range leaves out its end.")
    ],
    out_: Annotated[Path, typer.Option("--out", help="Folder for episodes.jsonl and summary.json.")],
    resume: Annotated[bool, typer.Option("--resume", help="Go on with the run in that folder.")] = False,
    seed: Annotated[int, typer.Option(min=0, help="Seed of an agent that draws.")] = 0,
    server: Annotated[
        str | None,
        typer.Option(
            help="URL of the server, or several with commas; by default the variable, else a local one."
        ),
    ] = None,
    split: Annotated[
        str | None, typer.Option(help="Which split the tasks are of; by default the first.")
    ] = None,
    action_format: ActionFormat = "react",
    parser: Parser = "default",
    on_unknown: OnUnknown = None,
    max_turns: MaxTurns = None,
    timeout: Timeout = DEFAULT_TIMEOUT,
    header: Header = None,
) -> None:
    """Let an agent play tasks, and keep its score.

    An episode that a failure of the environment ended is counted and not scored. Exits with 1 if that
    happened to every episode.
    """
    environment = find(name)
    headers = headers_of(header)  # kept apart from the options, which are written to the folder
    options: dict[str, Any] = {
        "split": split,
        "action_format": action_format,
        "parser": parser,
        "on_unknown": on_unknown,
        "max_turns": environment.max_turns if max_turns is None else max_turns or None,
    }
    env: AgentGymEnv = gymnasium.make(  # type: ignore[assignment]
        environment.id, server=server, timeout=timeout, headers=headers, disable_env_checker=True, **options
    ).unwrapped
    with contextlib.closing(env):
        player = evaluation.agent_from(agent, environment, seed)
        chosen = evaluation.parse_tasks(tasks, env.tasks)
        run = {
            "env_id": environment.id,
            "agent": agent,
            "tasks": tasks,
            "seed": seed,
            "options": options,
            "timeout": timeout,
            "server": [redact(url) for url in env.servers],
        }
        _see_that_one_answers(environment, env.servers, headers)
        interrupted = False
        folder = evaluation.RunFolder(out_, run, resume=resume)
        try:
            with folder:
                left = folder.remaining(chosen)
                with _progress(folder, len(chosen), len(left)) as on_episode:
                    evaluation.evaluate(env, player, left, on_episode=on_episode)
        except KeyboardInterrupt:
            interrupted = True
    summary = folder.summary
    _print(summary, f"{environment.id} by {agent}", out_)
    if interrupted:
        err.print("Interrupted; --resume goes on from here.")
        raise typer.Exit(_INTERRUPTED)
    if summary.episodes and not summary.scored:
        raise typer.Exit(1)


def _see_that_one_answers(
    environment: Environment, servers: Sequence[str], headers: Mapping[str, str]
) -> None:
    """Tell of a mistyped address now, and not by a folder full of faults.

    Raises:
        NoServer: No server is there, or it is another environment's.
    """
    problems = [found.problem for found in (probe(server, environment, headers) for server in servers)]
    if all(problems):
        raise NoServer(f"there is no {environment.name} to play on: {'; '.join(map(str, problems))}")


@contextlib.contextmanager
def _progress(folder: RunFolder, tasks: int, left: int) -> Iterator[Callable[[EpisodeRecord], None]]:
    """Show a progress bar on standard error where that is a terminal; yield what takes each episode."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=err, disable=not err.is_terminal) as progress:
        bar = progress.add_task("episodes", total=tasks, completed=tasks - left)

        def take(record: EpisodeRecord) -> None:
            folder.add(record)
            progress.advance(bar)

        yield take


def _print(summary: Summary, title: str, folder: Path) -> None:
    table = Table(
        title=title, title_justify="left", box=box.SIMPLE_HEAD, collapse_padding=True, pad_edge=False
    )
    success = _decimal(summary.success_rate)
    if summary.success_stderr is not None:
        success += f" ± {summary.success_stderr:.2f}"
    share = summary.parse_error_share
    row = {
        "episodes": str(summary.episodes),
        "faulted": str(summary.faulted),
        "success": success,
        "mean score": _decimal(summary.mean_score),
        "mean turns": _decimal(summary.mean_turns),
        "parse errors": "-" if share is None else f"{share:.1%}",
        "seconds": f"{summary.seconds:.1f}",
    }
    for heading in row:
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_row(*row.values())
    out.print(table)
    for kind, count in summary.faults.items():
        out.print(f"{count} ended by {kind}; not scored.")
    if line := _counters(summary.counters):
        out.print(line, soft_wrap=True)
    out.print(f"Written to {folder}.", soft_wrap=True)


def _counters(counters: Mapping[str, Any]) -> str:
    """Say in one line what was counted; nothing where nothing was."""
    if not counters["requests"]:
        return ""
    parts = [f"{counters['requests']} requests"]
    if counters["retries"]:
        parts.append(f"{counters['retries']} of them tries again")
    if counters["reconnects"]:
        parts.append(f"{counters['reconnects']} reconnects")
    if counters["faults"]:
        parts.append("faults: " + ", ".join(f"{n} {kind}" for kind, n in sorted(counters["faults"].items())))
    if counters["queued"]:
        parts.append(f"{counters['queued']:.1f} seconds queued")
    if counters["uncounted"]:
        parts.append(f"{counters['uncounted']} of {counters['episodes']} episodes not counted")
    return "; ".join(parts) + "."


def _decimal(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"
