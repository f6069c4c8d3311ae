"""``agentgym eval``."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from agentgym_gym import evaluate as evaluation
from agentgym_gym._http.limits import DEFAULT_TIMEOUT
from agentgym_gym._options import EnvOptions
from agentgym_gym._text import redact
from agentgym_gym.cli.console import err, out, print_table
from agentgym_gym.cli.names import TASKS_HELP, EnvKwargs, Name, json_object, resolve
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
from agentgym_gym.env import AgentGymEnv
from agentgym_gym.errors import NoServer

if TYPE_CHECKING:
    from collections.abc import Callable

    from agentgym_gym.catalogue import Environment
    from agentgym_gym.cli.names import Chosen
    from agentgym_gym.evaluate import EpisodeRecord, RunFolder, Summary

__all__ = ["evaluate"]

_INTERRUPTED = 130  # the status a shell gives a command that Ctrl-C ended


def evaluate(
    name: Name,
    *,
    agent: Annotated[
        str, typer.Option(help="Who plays: oracle, random, or replay:FILE, an earlier episodes.jsonl.")
    ],
    tasks: Annotated[str, typer.Option(help=TASKS_HELP)],
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
        str | None, typer.Option(help="Which split the tasks are of; by default the first, in a file any.")
    ] = None,
    action_format: ActionFormat = None,
    parser: Parser = None,
    on_unknown: OnUnknown = None,
    max_turns: MaxTurns = None,
    timeout: Timeout = None,
    env_kwargs: EnvKwargs = "{}",
    header: Header = None,
) -> None:
    """Let an agent play tasks, and keep its score.

    An episode that a failure of the environment ended is counted and not scored. Exits with 1 if that
    happened to every episode.
    """
    chosen, headers, more = resolve(name), headers_of(header), json_object(env_kwargs)
    options: dict[str, Any] = {
        "split": split,
        "action_format": action_format,
        "parser": parser,
        "on_unknown": on_unknown,
    }
    asked = {**options, "server": server, "timeout": timeout, "headers": headers or None}
    env = chosen.make(more, asked, max_turns)
    with contextlib.closing(env):
        player = evaluation.agent_from(agent, chosen.environment, seed)
        wanted = chosen.tasks(tasks, split)
        run = {
            "env_id": chosen.id,
            "agent": agent,
            "tasks": tasks,
            "seed": seed,
            "options": _options(chosen, options, more, max_turns),
        }
        own = env.unwrapped
        if chosen.environment is not None and isinstance(own, AgentGymEnv):
            run["timeout"] = DEFAULT_TIMEOUT if timeout is None else timeout
            run["server"] = [redact(url) for url in own.servers]
            _see_that_one_answers(chosen.environment, own.servers, headers)
        interrupted = False
        folder = evaluation.RunFolder(out_, run, resume=resume)
        try:
            with folder:
                left = folder.remaining(wanted)
                with _progress(folder, len(wanted), len(left)) as on_episode:
                    evaluation.evaluate(env, player, left, on_episode=on_episode)
        except KeyboardInterrupt:
            interrupted = True
    summary = folder.summary
    _print(summary, f"{chosen.id} by {agent}", out_)
    if interrupted:
        err.print("Interrupted; --resume goes on from here.")
        raise typer.Exit(_INTERRUPTED)
    if summary.episodes and not summary.scored:
        raise typer.Exit(1)


def _options(
    chosen: Chosen, given: Mapping[str, Any], more: Mapping[str, Any], max_turns: int | None
) -> dict[str, Any]:
    """Return what the episodes depend on, for the summary: a run is gone on with by the same alone."""
    public = {name: value for name, value in more.items() if name not in {"headers", "server"}}
    if chosen.environment is None:
        return {"max_turns": max_turns, **public}
    usual = {"action_format": EnvOptions.action_format, "parser": EnvOptions.parser}
    turns = chosen.environment.max_turns if max_turns is None else max_turns or None
    shown = {name: usual.get(name) if value is None else value for name, value in given.items()}
    return {**shown, "max_turns": turns, **public}


def _see_that_one_answers(
    environment: Environment, servers: Sequence[str], headers: Mapping[str, str]
) -> None:
    """Tell of a mistyped address now, and not by a folder full of faults.

    Raises:
        NoServer: No server is there, or it is another environment's.
    """
    probes = [probe(server, environment, headers) for server in servers]
    if all(found.problem for found in probes):
        told = "; ".join(f"{found.url}: {found.problem}" for found in probes)
        raise NoServer(f"there is no {environment.name} to play on: {told}")


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
    share, interval = summary.parse_error_share, summary.success_interval
    row = {
        "episodes": str(summary.episodes),
        "faulted": str(summary.faulted),
        "success": _decimal(summary.success_rate),
        "95 %": "-" if interval is None else "{:.2f} to {:.2f}".format(*interval),
        "score": _decimal(summary.mean_score),
        "turns": _decimal(summary.mean_turns),
        "parse errors": "-" if share is None else f"{share:.1%}",
        "seconds": f"{summary.seconds:.1f}",
    }
    print_table(list(row), [list(row.values())], title=title)
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
