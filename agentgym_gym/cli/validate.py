"""``agentgym validate``."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from agentgym_gym import evaluate as evaluation
from agentgym_gym._text import redact
from agentgym_gym.catalogue import environments
from agentgym_gym.cli.console import clean, err, out, print_json, print_table
from agentgym_gym.cli.names import TASKS_HELP, EnvKwargs, Name, json_object, resolve
from agentgym_gym.cli.options import (
    ActionFormat,
    Header,
    MaxTurns,
    OnUnknown,
    Parser,
    Server,
    Split,
    Timeout,
    headers_of,
)
from agentgym_gym.cli.sources import require_server
from agentgym_gym.env import AgentGymEnv
from agentgym_gym.errors import BadOption

if TYPE_CHECKING:
    from agentgym_gym.cli.names import Chosen
    from agentgym_gym.evaluate import Agent, EpisodeRecord, Validation

__all__ = ["validate"]

_LINES = 10


def validate(
    name: Name,
    *,
    tasks: Annotated[str, typer.Option(help=TASKS_HELP)] = "all",
    gold: Annotated[
        str | None,
        typer.Option(
            metavar="AGENT",
            help="Who plays the known solutions: oracle, or replay:PATH, a kept run that won or task files "
            "of WebArena; by default the oracle, where there is one.",
        ),
    ] = None,
    server: Server = None,
    split: Split = None,
    action_format: ActionFormat = None,
    parser: Parser = None,
    on_unknown: OnUnknown = None,
    max_turns: MaxTurns = None,
    timeout: Timeout = None,
    env_kwargs: EnvKwargs = "{}",
    header: Header = None,
    out_: Annotated[
        Path | None, typer.Option("--out", help="Folder for the episodes; by default they are not kept.")
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with what is in that folder.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Find tasks that cannot be won, or are won by doing nothing.

    No model is needed. Each task is played by its known solution and by an agent that replies with nothing.
    Exits with 1 if a known solution does not win, if the other agent does, or if a fault has left that open.
    """
    if resume and out_ is None:
        raise BadOption("--resume goes on with a folder: name it by --out")
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
        player = _gold(chosen, gold)
        wanted = chosen.tasks(tasks, split)
        public = {key: value for key, value in more.items() if key not in {"headers", "server"}}
        facts: dict[str, Any] = {
            "tasks": tasks,
            "seed": 0,
            "options": {**options, "max_turns": max_turns, **public},
        }
        own = env.unwrapped
        if chosen.environment is not None and isinstance(own, AgentGymEnv):
            facts["server"] = [redact(url) for url in own.servers]
            require_server(chosen.environment, own.servers, headers)
        with _progress() as on_episode:
            found = evaluation.validate(
                env, player, wanted, folder=out_, facts=facts, resume=resume, on_episode=on_episode
            )
    if json:
        print_json(found.to_json())
    else:
        _print(found, chosen, out_)
    raise typer.Exit(0 if found.passed else 1)


def _gold(chosen: Chosen, gold: str | None) -> Agent | None:
    known = chosen.environment is not None and chosen.environment.oracle is not None
    if gold is None and not known:
        return None
    agent = evaluation.agent_from(gold or "oracle", chosen.environment)
    if isinstance(agent, evaluation.RandomAgent):
        raise BadOption("--gold random knows no solution; it is oracle or replay:PATH")
    return agent


@contextlib.contextmanager
def _progress() -> Iterator[Callable[[EpisodeRecord], None]]:
    """Show on standard error how many episodes are over, where that is a terminal."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=err, disable=not err.is_terminal) as progress:
        bar = progress.add_task("episodes", total=None)
        yield lambda _: progress.advance(bar)


def _print(found: Validation, chosen: Chosen, folder: Path | None) -> None:
    counts = found.to_json()
    rows = [
        [agent, *map(str, counts[name].values())]
        for name, agent in (("gold", found.gold_agent), ("null", evaluation.NullAgent.name))
        if agent is not None
    ]
    headings = [heading.replace("_", " ") for heading in counts["null"]]
    print_table(["agent", *headings], rows, left=["agent"], title=found.env_id)
    if found.gold_agent is None:
        oracles = ", ".join(each.name for each in environments() if each.oracle)
        out.print(
            f"No solution of {chosen.id} is known here, so that nobody has tried to win its tasks. There are "
            f"oracles of {oracles}; --gold replay:PATH plays a kept run that won.",
            soft_wrap=True,
        )
    elif found.no_solution:
        out.print(f"No known solution: tasks {_ids(found.no_solution)}.", soft_wrap=True)
        for why in list(dict.fromkeys(found.no_solution.values()))[:_LINES]:
            out.print(f"  {clean(why)}", soft_wrap=True)
    _list("The known solution does not win", found.not_won)
    _list("Won by doing nothing", found.won_by_null)
    _list("Ended by a fault, so that nothing is known", found.faulted)
    _list("The environment does not say who won", found.undecided)
    if found.passed:
        gold = "The known solution wins. " if found.gold and not found.undecided else ""
        out.print(f"{gold}Doing nothing wins no task.")
    if folder is not None:
        out.print(f"Written to {folder}.", soft_wrap=True)


def _list(what: str, records: Iterable[EpisodeRecord]) -> None:
    records = list(records)
    if not records:
        return
    out.print(f"{what}: tasks {_ids(record.task_id for record in records)}.", soft_wrap=True)
    for record in records[:_LINES]:
        fault = record.fault or record.agent_fault
        score = "no score" if record.score is None else f"score {record.score:g}"
        told = f"{fault['kind']}: {fault['message']}" if fault else f"{score}, {record.ending}"
        turns = f"{record.turns} turn{'' if record.turns == 1 else 's'}"
        out.print(f"  task {record.task_id}, {record.agent}, {turns}: {clean(told):.300}", soft_wrap=True)
    if len(records) > _LINES:
        out.print(f"  and {len(records) - _LINES} more")


def _ids(tasks: Iterable[int]) -> str:
    """Return ids as ``--tasks`` takes them: ranges leave out their end."""
    ranges: list[list[int]] = []
    for task in sorted(set(tasks)):
        if ranges and ranges[-1][1] == task:
            ranges[-1][1] += 1
        else:
            ranges.append([task, task + 1])
    return ",".join(f"{start}" if stop == start + 1 else f"{start}:{stop}" for start, stop in ranges)
