"""``agentgym data``: write the files for training."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from agentgym_gym import data as library
from agentgym_gym._cli.completion import complete_env, complete_split
from agentgym_gym._cli.console import Command, out, print_json, print_table
from agentgym_gym._cli.declared import command
from agentgym_gym._cli.help_layouts import DATA_RL
from agentgym_gym._cli.options import (
    ActionFormat,
    Force,
    Json,
    MaxTurns,
    OnUnknown,
    Parser,
    Timeout,
    TrainingSplit,
    ValidationSize,
    text_of,
)
from agentgym_gym._cli.resolve_env import (
    OURS,
    TASKS_HELP,
    by_name,
    json_object,
    refuse_agentgym_options,
    refuse_twice,
    resolve,
)
from agentgym_gym._cli.training_tasks import describe_tasks
from agentgym_gym.data import Division, Item, Recipe
from agentgym_gym.data._items import read_prompts, training_items, validation_items
from agentgym_gym.data._split import parse_val
from agentgym_gym.errors import BadOption, UnknownEnvironment

if TYPE_CHECKING:
    from agentgym_gym._cli.resolve_env import Chosen
    from agentgym_gym.catalogue import Environment
    from agentgym_gym.data import Seeds

__all__ = ["RlOptions", "data"]

data = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Write training files.")


@dataclass(frozen=True, kw_only=True)
class RlOptions:
    """The options of ``agentgym data rl``."""

    sources: Annotated[
        list[str],
        typer.Argument(
            metavar="SOURCE",
            help="environments (id, name or MODULE:ID), or AgentGym files or folders",
            autocompletion=complete_env,
        ),
    ]
    out_: Annotated[Path, typer.Option("--out", help="folder for train.parquet and val.parquet")]
    tasks: Annotated[
        str | None,
        typer.Option(help=TASKS_HELP, show_default="all"),
    ] = None
    val: ValidationSize = "0.1"
    val_split: Annotated[
        str | None,
        typer.Option(
            help="split of the validation tasks",
            show_default="dev, else training tasks that are kept out",
            autocompletion=complete_split,
        ),
    ] = None
    num_samples: Annotated[
        int | None, typer.Option(min=1, help="number of tasks to sample", show_default="all")
    ] = None
    seed: Annotated[int, typer.Option(min=0, help="random seed of the sample, split and order")] = 0
    system_prompt: Annotated[
        list[str] | None,
        typer.Option(
            metavar="[NAME=]FILE",
            help="file with a system prompt to replace the environment's",
        ),
    ] = None
    system_prompt_from_traj: Annotated[
        Path | None,
        typer.Option(help="file or folder of AgentTraj with the system prompt"),
    ] = None
    server: Annotated[
        list[str] | None,
        typer.Option(
            metavar="[NAME=]URL",
            help="server URL to write into the rows; commas separate several",
            show_default="configured at training",
        ),
    ] = None
    split: TrainingSplit = None
    action_format: ActionFormat = None
    parser: Parser = None
    on_unknown: OnUnknown = None
    max_turns: MaxTurns = None
    timeout: Timeout = None
    env_kwargs: Annotated[
        list[str] | None,
        typer.Option(
            metavar="[NAME=]JSON",
            help="more arguments of the environment, as a JSON object",
        ),
    ] = None
    force: Force = False
    as_json: Json = False

    @property
    def agentgym_only(self) -> dict[str, Any]:
        """The options, if given, that apply only to AgentGym's environments, by argument name."""
        options = {
            "action_format": self.action_format,
            "parser": self.parser,
            "max_turns": self.max_turns,
            "split": self.split,
            "on_unknown": self.on_unknown,
            "timeout": self.timeout,
        }
        return {name: value for name, value in options.items() if value is not None}


@data.command("rl", cls=Command, epilog=DATA_RL.epilog)
@command(RlOptions, DATA_RL.groups)
def _rl(options: RlOptions) -> None:
    """Write tasks for reinforcement learning with verl.

    A row contains the system prompt, blank if the environment has none, the task and its environment; the
    first observation comes from the rollout. No server is contacted.

    A source is an environment, a file of AgentGym's item ids or trajectories, or a folder of such files.
    Several sources are combined. With several environments, put NAME= before the value of --system-prompt,
    --server and --env-kwargs, and repeat the option for each environment.

    Tasks of environments are ids and ranges: 3, 1,2,5, 0:50 (without 50) or 10:, or all, or a file of item
    ids. If an environment has no numbered tasks, they are seeds, and all means 1000. Ids must be of the
    split train unless --split names another; a file may name tasks of any split.

    With --system-prompt-from-traj, the system prompt is the first message of the trajectories. Use it with
    --parser agentgym for models trained on AgentGym's prompts.
    """
    chosen = {each.source.name: each for each in map(_resolved, _named(options.sources))}
    items, for_validation = _items(options)
    division = library.divide(
        items,
        val=parse_val(options.val),
        seed=options.seed,
        num_samples=options.num_samples,
        validation=for_validation,
    )
    drawn = {item.environment.name for item in (*division.train, *division.val)}
    of = {item.environment.name: item.environment for item in items if item.environment.name in drawn}
    recipes = _recipes(options, of, chosen)
    files = {"train": division.train, "val": division.val}
    written = library.write(
        options.out_,
        {part: _rows(items, recipes) for part, items in files.items() if items},
        library.schema(),
        force=options.force,
    )
    summary = _summary(division, of, recipes, written)
    if options.as_json:
        print_json(summary | {"seed": options.seed})
    else:
        _print(summary)


def _recipes(
    options: RlOptions, of: Mapping[str, Environment | Seeds], chosen: Mapping[str, Chosen]
) -> dict[str, Recipe]:
    """Return the recipe for the rows of each environment.

    Args:
        options: The options.
        of: The environments of the tasks, by name.
        chosen: The environments that the options name.

    Raises:
        AgentGymError: An environment does not support an option; the message names the option.
    """
    names, agentgym_only = list(of), options.agentgym_only
    if all(isinstance(each, library.Seeds) for each in of.values()):
        refuse_agentgym_options([*agentgym_only], names[0])
    own = {"action_format": "react", "parser": "default"} | agentgym_only
    if "max_turns" in own:
        own["max_turns"] = own["max_turns"] or None
    servers = by_name("--server", options.server, names)
    arguments = by_name("--env-kwargs", options.env_kwargs, names)
    more = {name: json_object(text) for name, text in arguments.items()}
    prompts = _prompts(options.system_prompt, options.system_prompt_from_traj, names)
    recipes = {}
    for name, environment in of.items():
        kwargs = more.get(name, {})
        if isinstance(environment, library.Seeds):
            refuse_agentgym_options(["server"] if name in servers else [], name)
            module = chosen[name].module
            usual = _prompt_of(chosen[name].name, kwargs)
        else:
            module = chosen[name].module if name in chosen else OURS
            server_kwargs = {"server": servers[name]} if name in servers else {}
            refuse_twice([*agentgym_only, *server_kwargs], kwargs)
            kwargs = own | server_kwargs | kwargs
            usual = library.own_prompt(environment, kwargs)  # validates the arguments
        recipes[name] = Recipe(kwargs, prompts.get(name, usual), module)
    return recipes


def _named(sources: Sequence[str]) -> Iterator[str]:
    """Yield the sources that are environments, not files or folders."""
    for source in sources:
        if not Path(source).exists():
            yield source


def _resolved(source: str) -> Chosen:
    try:
        return resolve(source)
    except UnknownEnvironment as error:
        raise BadOption(f"source {source!r} is not a file or folder, and ", *error.args) from error


def _items(options: RlOptions) -> tuple[list[Item], list[Item]]:
    """Return the items of all sources, and those for validation only."""
    items: list[Item] = []
    for_validation: list[Item] = []
    named = list(_named(options.sources))
    for source in options.sources:
        if source in named:
            of = resolve(source).source
            training = training_items(of, options.tasks or "all", options.split)
            for_validation += validation_items(of, training, options.val_split)
            items += training
        else:
            items += library.read_items(Path(source), options.split)
    for unused, value in (("--tasks", options.tasks), ("--val-split", options.val_split)):
        if value is not None and not named:
            raise BadOption(
                f"{unused} {value!r:.80} is only for environments: the sources are files, which list their "
                "tasks"
            )
    return items, for_validation


def _rows(items: Iterable[Item], recipes: Mapping[str, Recipe]) -> Iterator[dict[str, Any]]:
    """Yield a row for each item; rows of seeds have the same format as in ``agentgym verl init``."""
    from verl_bridge.recipes import seeded  # noqa: PLC0415 - no other command needs this import

    for index, item in enumerate(items):
        recipe = recipes[item.environment.name]
        if isinstance(item.environment, library.Seeds):
            env_id = f"{recipe.module}:{item.environment.id}" if recipe.module else item.environment.id
            (row,) = seeded(env_id, [item.task_id], recipe.system_prompt, recipe.env_kwargs)
        else:
            (row,) = library.rows([item], recipes)
        row["extra_info"]["index"] = index
        yield row


def _prompt_of(env_id: str, env_kwargs: Mapping[str, Any]) -> str | None:
    """Return the system prompt of another library's environment; None if it has none."""
    from verl_bridge.recipes import own_prompt  # noqa: PLC0415 - no other command needs this import

    try:
        return own_prompt(env_id, env_kwargs)
    except ValueError as error:
        raise BadOption(str(error)) from error


def _prompts(
    files: Sequence[str] | None, trajectories: Path | None, names: Sequence[str]
) -> Mapping[str, str]:
    """Return the prompts that replace the environments' own, by environment name."""
    if trajectories is None:
        return {name: text_of(Path(file)) for name, file in by_name("--system-prompt", files, names).items()}
    if files:
        raise BadOption("--system-prompt and --system-prompt-from-traj exclude each other: give one of them")
    prompts = read_prompts(trajectories)
    missing = [name for name in names if name not in prompts]
    if missing:
        raise BadOption(
            f"{trajectories} has no trajectory of {', '.join(missing)}; give --system-prompt instead"
        )
    return prompts


def _summary(
    division: Division,
    of: Mapping[str, Environment | Seeds],
    recipes: Mapping[str, Recipe],
    written: Mapping[str, Path],
) -> dict[str, Any]:
    parts = {"train": division.train, "val": division.val}
    counts = {part: Counter(item.environment.name for item in items) for part, items in parts.items()}
    lengths = [
        len(recipes[item.environment.name].system_prompt or "") for items in parts.values() for item in items
    ]
    tasks = {
        part: {name: [item.task_id for item in items if item.environment.name == name] for name in of}
        for part, items in parts.items()
    }
    notes = [
        note
        for name, environment in of.items()
        if not isinstance(environment, library.Seeds)
        for note in describe_tasks(environment, tasks["train"][name], tasks["val"][name])
    ]
    return {
        "rows": {part: len(items) for part, items in parts.items()},
        "notes": notes,
        "environments": {
            of[name].id: {
                "train": counts["train"][name],
                "val": counts["val"][name],
                "prompt_chars": len(recipe.system_prompt or ""),
            }
            for name, recipe in recipes.items()
        },
        "duplicates": division.duplicates,
        "prompt_chars": {"mean": round(sum(lengths) / len(lengths), 1), "max": max(lengths)},
        "files": {part: str(path) for part, path in written.items()},
    }


def _print(summary: Mapping[str, Any]) -> None:
    columns = {"train": "train", "val": "val", "prompt characters": "prompt_chars"}
    table = [
        (name, *(f"{each[column]:,}" for column in columns.values()))
        for name, each in summary["environments"].items()
    ]
    print_table(("environment", *columns), table, left={"environment"})
    rows, characters = summary["rows"], summary["prompt_chars"]
    out.print(
        f"{rows['train']:,} rows for training and {rows['val']:,} for validation; a prompt has "
        f"{characters['mean']:,} characters on average, {characters['max']:,} at most.",
    )
    for note in summary["notes"]:
        out.print(note)
    if summary["duplicates"]:
        out.print(f"Duplicates left out: {summary['duplicates']:,}.")
    out.print(f"Written to {' and '.join(summary['files'].values())}.")
