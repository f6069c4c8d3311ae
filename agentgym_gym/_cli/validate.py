"""``agentgym validate``: find tasks that cannot be won, or are won by doing nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from agentgym_gym import evaluate as evaluation
from agentgym_gym._cli.console import clean, out, print_json, print_table
from agentgym_gym._cli.declared import GivenOptions, command
from agentgym_gym._cli.options import Header, Name, Split, headers_of
from agentgym_gym._cli.progress import Progress
from agentgym_gym._cli.table_formats import show_range
from agentgym_gym.catalogue import environments
from agentgym_gym.errors import BadOption
from agentgym_gym.evaluate import Run
from agentgym_gym.evaluate._agents import maker_from
from agentgym_gym.evaluate._env_setup import EnvSetup
from agentgym_gym.evaluate._interrupts import interruptible
from agentgym_gym.evaluate._resolve import find_modules_here
from agentgym_gym.evaluate._world import in_world, world_of
from agentgym_gym.local_servers import ServedWorld
from agentgym_gym.options import Option

if TYPE_CHECKING:
    from agentgym_gym.evaluate import Agent, EpisodeRecord, Validation

__all__ = ["ValidateOptions", "validate"]

_LINES = 10
"""The maximum number of details printed for each finding."""


@dataclass(frozen=True, kw_only=True)
class ValidateOptions:
    """The options of ``agentgym validate``."""

    name: Name
    gold: Annotated[
        str | None,
        Option(
            "agent that plays the solutions: oracle, replay:PATH or MODULE:NAME",
            metavar="AGENT",
            completes="agent",
            default="oracle, if there is one",
            argument="agent",
        ),
    ] = None
    split: Split = None
    policies: Annotated[bool, Option("play cheap policies too, such as constant answers")] = False
    environment: Annotated[
        Mapping[str, Any],
        GivenOptions(
            Run,
            without=(
                *("protocol", "items", "split", "positions", "limit", "sample", "samples", "seed"),
                "system_prompt",
            ),
        ),
    ]
    header: Header = None
    concurrency: Annotated[int, Option("maximum number of concurrent episodes", least=1)] = 16
    out: Annotated[Path | None, Option("output folder for the episodes", default="not kept")] = None
    resume: Annotated[bool, Option("resume the validation in the output folder")] = False
    json: Annotated[bool, Option("print JSON instead of a table")] = False


@command(
    ValidateOptions,
    {
        "Tasks": ("gold", "policies", "tasks", "split"),
        "Run": ("out", "resume", "concurrency", "json"),
        "Environment": ("header",),
    },
    examples=(
        "agentgym validate TextCraft",
        "agentgym validate Weather --split test --policies",
        "agentgym validate my_module:my/Env-v0 --gold my_module:Solver --tasks 0:50",
    ),
)
def validate(options: ValidateOptions) -> None:
    """Find tasks that cannot be won, or that are won by doing nothing.

    It needs no model: it plays each task twice, with its known solution and with an agent whose replies are
    empty. Exits with 1 if a known solution does not win, if the empty replies win, if the server cannot judge
    a task, or if a fault prevents the check. The tasks that the environment's page lists as impossible are
    counted separately: it exits with 1 if one of them is won.

    The solutions come from the oracle; from replay:PATH, a run whose episodes won or task files of WebArena;
    or from an agent of yours, MODULE:NAME.

    With --policies, agents without a model play too: constant answers, all numbers below 100, the words of
    the goal, the page as the answer, the first admissible action, a repeated action, random valid actions.
    Exits with 1 if one wins more than 1 % of the tasks, or random actions more than 2 %.

    Tasks are ids and ranges: 3, 1,2,5, 0:50 (without 50) or 10:, or all, or a file of AgentGym's item ids. If
    an environment has no numbered tasks, they are seeds, and all means 1000.

    Other users of this machine can see --header in the list of processes. To hide it, set the variable
    AGENTGYM_<NAME>_HEADERS to a JSON object instead.
    """
    if options.resume and options.out is None:
        raise BadOption("--resume needs the folder of the earlier validation: give --out")
    headers = headers_of(options.header) or None
    run = Run(options.name, "", split=options.split, headers=headers, **options.environment)
    environment = EnvSetup(run, any_split=True)
    make_gold = _gold(environment, options.gold)
    facts = {**environment.facts(tools=False), "seed": 0, "samples": 1, "concurrency": options.concurrency}
    with Progress((), None, success=False) as progress:
        work = evaluation.validate(
            environment.maker(tools=False),
            make_gold,
            environment.tasks,
            unwinnable=_unwinnable(environment),
            policies=options.policies,
            cheap_wins=known.cheap_wins if (known := environment.chosen.environment) else {},
            concurrency=options.concurrency,
            folder=options.out,
            facts=facts,
            resume=options.resume,
            on_episode=progress.note,
            isolate=environment.isolate,
            timeout=environment.deadline,
            success_at=environment.success_at,
        )
        validation = asyncio.run(interruptible(work))
    if options.json:
        print_json(validation.to_json())
    else:
        world = world_of(validation.env_id, environment.servers)
        _print(validation, environment, options.out, in_world(validation.env_id, world))
    raise typer.Exit(0 if validation.passed else 1)


def _unwinnable(environment: EnvSetup) -> Collection[int]:
    """Return the tasks known to be impossible; none with another world or a higher turn limit."""
    known, turns = environment.chosen.environment, environment.run.max_turns
    if known is None or (turns is not None and not 0 < turns <= known.max_turns):
        return ()
    own = all(world is not None and not world.data and not world.seed for world in _worlds(environment))
    return known.unwinnable if own else ()


def _worlds(environment: EnvSetup) -> list[ServedWorld | None]:
    return [ServedWorld.parse(text) for text in environment.servers.get("served_by", ())]


def _own_data(environment: EnvSetup) -> bool:
    """Return whether the tasks are of a user's files (``--data``), for which no oracle has solutions."""
    return any(world is not None and world.data for world in _worlds(environment))


def _gold(environment: EnvSetup, gold: str | None) -> Callable[[], Agent] | None:
    """Return a factory for the agent that plays known solutions; None if there is no such agent.

    Raises:
        BadOption: The agent does not play known solutions.
    """
    chosen = environment.chosen
    known = chosen.environment is not None and chosen.environment.oracle is not None
    if gold is None and (not known or _own_data(environment)):
        return None
    if gold == "random":
        raise BadOption("--gold random has no solutions: give oracle, replay:PATH or MODULE:NAME")
    find_modules_here()
    return maker_from(gold or "oracle", chosen.environment)


def _print(validation: Validation, environment: EnvSetup, folder: Path | None, title: str) -> None:
    counts = validation.to_json()
    rows = [
        [agent, *map(str, counts[name].values())]
        for name, agent in (("gold", validation.gold_agent), ("null", evaluation.NullAgent.name))
        if agent is not None
    ]
    headings = [heading.replace("_", " ") for heading in counts["null"]]
    print_table(["agent", *headings], rows, left=["agent"], title=title)
    if validation.gold_agent is None:
        if _own_data(environment):
            reason, offer = f"The server of {environment.chosen.id} plays files of yours (--data)", "To"
        else:
            oracles = ", ".join(each.name for each in environments() if each.oracle)
            reason, offer = f"{environment.chosen.id} has no oracle", f"There are oracles of {oracles}; to"
        out.print(
            f"{reason}, so its tasks were played only with empty replies. {offer} play the solutions of a "
            "run that won, give --gold replay:PATH.",
        )
    elif validation.no_solution:
        out.print(f"No known solution: tasks {_ids(validation.no_solution)}.")
        for why in list(dict.fromkeys(validation.no_solution.values()))[:_LINES]:
            out.print(f"  {clean(why)}")
    _list("The known solution does not win", validation.not_won)
    if validation.impossible:
        tasks = [record.task_id for record in validation.impossible]
        noun = "task" if len(tasks) == 1 else "tasks"
        out.print(f"{len(tasks)} impossible {noun}, not won: {_ids(tasks)}.")
    _list("Listed as impossible, but won", validation.won_unwinnable)
    _list("Won by doing nothing", validation.won_by_null)
    _list("Cannot be judged", validation.not_judged)
    _list("Ended by a fault, so not checked", validation.faulted)
    _list("The environment reports no success", validation.undecided)
    if validation.policies:
        _print_policies(validation)
    if validation.passed:
        others = " all others" if validation.impossible else ""
        gold = f"The known solution wins{others}. " if validation.gold and not validation.undecided else ""
        out.print(f"{gold}Doing nothing wins no task.")
    if folder is not None:
        out.print(f"Written to {folder}.")


def _print_policies(validation: Validation) -> None:
    rows = [
        [name, str(result.played), str(result.won), f"{result.share:.3f}", show_range(result.interval)]
        for name, result in validation.policies.items()
    ]
    print_table(["policy", "played", "won", "share", "95 % interval"], rows, left=["policy"])
    for name, result in validation.policies.items():
        if result.share > result.most:
            known = f": known, {result.reason}" if result.reason else ""
            out.print(f"{name} wins {result.share:.1%} of the tasks, above {result.most:.0%}{known}.")


def _list(title: str, records: Iterable[EpisodeRecord]) -> None:
    records = list(records)
    if not records:
        return
    out.print(f"{title}: tasks {_ids(record.task_id for record in records)}.")
    for record in records[:_LINES]:
        fault = record.fault or record.agent_fault
        score = "no score" if record.score is None else f"score {record.score:g}"
        reason = f"{fault['kind']}: {fault['message']}" if fault else f"{score}, {record.ending}"
        turns = f"{record.turns} turn{'' if record.turns == 1 else 's'}"
        out.print(f"  task {record.task_id}, {record.agent}, {turns}: {clean(reason):.300}")
    if len(records) > _LINES:
        out.print(f"  and {len(records) - _LINES} more")


def _ids(tasks: Iterable[int]) -> str:
    """Format ids in the syntax of ``--tasks``: ranges exclude their end."""
    ranges: list[list[int]] = []
    for task in sorted(set(tasks)):
        if ranges and ranges[-1][1] == task:
            ranges[-1][1] += 1
        else:
            ranges.append([task, task + 1])
    return ",".join(f"{start}" if stop == start + 1 else f"{start}:{stop}" for start, stop in ranges)
