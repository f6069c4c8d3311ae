"""``agentgym data rl``: write tasks for reinforcement learning with verl."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from agentgym_gym import data
from agentgym_gym.commands import (
    TASKS_HELP,
    AgentGymOptions,
    Force,
    GivenOptions,
    Json,
    Option,
    PerEnvironment,
    ValidationSize,
    command,
    file_text,
    json_object,
    out,
    print_json,
    print_table,
    read_per_environment,
    refuse_agentgym_options,
    refuse_twice,
    resolve,
)
from agentgym_gym.data import Division, Item, Recipe, Seeds
from agentgym_gym.errors import ArgumentName, BadOption, UnknownEnvironment
from verl_bridge._commands.selections import ENVIRONMENT, KEPT_OUT, PROMPT_HELP, server_urls, validation_of
from verl_bridge._commands.task_notes import describe_tasks
from verl_bridge.recipes import own_prompt

if TYPE_CHECKING:
    from agentgym_gym.catalogue import Environment
    from agentgym_gym.commands import Chosen

__all__ = ["RlOptions", "rl"]


@dataclass(frozen=True, kw_only=True)
class RlOptions:
    """The options of ``agentgym data rl``."""

    sources: Annotated[
        list[str],
        Option(
            "environments (id, name or MODULE:ID), or AgentGym files or folders",
            positional=True,
            metavar="SOURCE",
            completes="environment",
        ),
    ]
    out_: Annotated[Path, Option("folder for train.parquet and val.parquet")]
    tasks: Annotated[str | None, Option(TASKS_HELP, default="all")] = None
    val: ValidationSize = "0.1"
    val_split: Annotated[
        str | None, Option("split of the validation tasks", default=KEPT_OUT, completes="split")
    ] = None
    num_samples: Annotated[int | None, Option("number of tasks to sample", default="all", least=1)] = None
    seed: Annotated[int, Option("random seed of the sample, split and order", least=0)] = 0
    system_prompt: Annotated[
        list[str] | None,
        PerEnvironment(file_text),
        Option(PROMPT_HELP, metavar="[NAME=]FILE"),
    ] = None
    system_prompt_from_traj: Annotated[
        Path | None, Option("file or folder of AgentTraj with the system prompt")
    ] = None
    server: Annotated[
        list[str] | None,
        PerEnvironment(),
        Option(
            "server URL to write into the rows; commas separate several",
            default="configured at training",
            metavar="[NAME=]URL",
        ),
    ] = None
    agentgym_only: Annotated[Mapping[str, Any], GivenOptions(AgentGymOptions)] = field(default_factory=dict)
    env_kwargs: Annotated[
        list[str] | None,
        PerEnvironment(json_object),
        Option("more arguments of the environment, as a JSON object", metavar="[NAME=]JSON"),
    ] = None
    force: Force = False
    as_json: Json = False

    @property
    def split(self) -> str | None:
        """The split of the training tasks."""
        split: str | None = self.agentgym_only.get("split")
        return split


@command(
    RlOptions,
    groups={
        "Tasks": ("tasks", "split", "num_samples", "val", "val_split", "seed"),
        "Output": ("out_", "force", "as_json"),
        "Prompt": ("system_prompt", "system_prompt_from_traj"),
        ENVIRONMENT: (
            *("server", "action_format", "parser", "on_unknown", "max_turns", "timeout", "env_kwargs"),
        ),
    },
    examples=(
        "agentgym data rl TextCraft --out data/craft",
        "agentgym data rl TextCraft Maze --val 10 --out data/two",
    ),
)
def rl(options: RlOptions) -> None:
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
    division = data.divide(
        items,
        val=data.parse_val(options.val),
        seed=options.seed,
        num_samples=options.num_samples,
        validation=for_validation,
    )
    drawn = {item.environment.name for item in (*division.train, *division.val)}
    of = {item.environment.name: item.environment for item in items if item.environment.name in drawn}
    recipes = _recipes(options, of, chosen)
    files = {"train": division.train, "val": division.val}
    written = data.write(
        options.out_,
        {part: data.rows(items, recipes) for part, items in files.items() if items},
        data.schema(),
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
    agentgym_only = options.agentgym_only
    if all(isinstance(each, Seeds) for each in of.values()):
        refuse_agentgym_options([*agentgym_only], next(iter(of)))
    own = {"action_format": "react", "parser": "default"} | dict(agentgym_only)
    if "max_turns" in own:
        own["max_turns"] = own["max_turns"] or None
    prompts = _prompts_of_trajectories(options, [*of])  # first, as it needs no file of --system-prompt
    values = read_per_environment(options, [*of])
    recipes = {}
    for name, environment in of.items():
        given = values[name]
        server = {"server": given["server"]} if "server" in given else {}
        kwargs = given.get("env_kwargs", {})
        if isinstance(environment, Seeds):
            refuse_agentgym_options([*server], name)
            usual = own_prompt(chosen[name].name, kwargs)
        else:
            refuse_twice([*agentgym_only, *server], kwargs)
            if server:
                server_urls(environment, given["server"])  # refuses passwords, as the rows would contain them
            kwargs = own | server | kwargs
            usual = data.own_prompt(environment, kwargs)  # validates the arguments
        prompt = prompts.get(name, given.get("system_prompt", usual))
        module = chosen[name].module if name in chosen else Recipe.module
        recipes[name] = Recipe(kwargs, prompt, module)
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
        raise BadOption((f"source {source!r} is not a file or folder, and ", *error.args)) from error


def _items(options: RlOptions) -> tuple[list[Item], list[Item]]:
    """Return the items of all sources, and those for validation only."""
    items: list[Item] = []
    for_validation: list[Item] = []
    named = list(_named(options.sources))
    for source in options.sources:
        if source in named:
            of = resolve(source).source
            training = data.training_items(of, options.tasks or "all", options.split)
            for_validation += validation_of(of, training, options.val_split)
            items += training
        else:
            items += data.read_items(Path(source), options.split)
    for unused, value in (("tasks", options.tasks), ("val_split", options.val_split)):
        if value is not None and not named:
            problem = "is only for environments: the sources are files, which list their tasks"
            raise BadOption(unused, value, problem=problem)
    return items, for_validation


def _prompts_of_trajectories(options: RlOptions, names: Sequence[str]) -> Mapping[str, str]:
    """Return the prompts of ``--system-prompt-from-traj`` by environment name; empty without the option."""
    trajectories = options.system_prompt_from_traj
    if trajectories is None:
        return {}
    if options.system_prompt:
        other = ArgumentName("system_prompt_from_traj")
        raise BadOption("system_prompt", problem=("and ", other, " exclude each other: give one of them"))
    prompts = data.read_prompts(trajectories)
    missing = [name for name in names if name not in prompts]
    if missing:
        problem = f"{trajectories} has no trajectory of {', '.join(missing)}; give "
        raise BadOption((problem, ArgumentName("system_prompt"), " instead"))
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
        if not isinstance(environment, Seeds)
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
