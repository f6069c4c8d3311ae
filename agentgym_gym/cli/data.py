"""``agentgym data``: the files that training reads."""

from __future__ import annotations

import importlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich import box
from rich.table import Table

from agentgym_gym import data as library
from agentgym_gym._http.limits import DEFAULT_TIMEOUT
from agentgym_gym.catalogue import find
from agentgym_gym.cli.console import out, print_json
from agentgym_gym.cli.options import (  # noqa: TC001 - typer reads them at run time
    ActionFormat,
    MaxTurns,
    OnUnknown,
    Parser,
    Timeout,
)
from agentgym_gym.data import Division, Item, Recipe
from agentgym_gym.errors import BadOption, UnknownEnvironment

__all__ = ["data"]

data = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Write the files that training reads.")


@data.command("rl")
def _rl(
    sources: Annotated[
        list[str],
        typer.Argument(
            metavar="SOURCE",
            help="An environment, by its id or name, MODULE:ID for one of your own; a file of AgentGym's "
            "item ids or trajectories; or a folder of such files. Several are put together.",
        ),
    ],
    *,
    out_: Annotated[Path, typer.Option("--out", help="Folder for train.parquet and val.parquet.")],
    tasks: Annotated[
        str | None,
        typer.Option(
            help="Which tasks of an environment: 0:50, 3, 1,2,5, 10: or all; a range leaves out its end. "
            "All by default."
        ),
    ] = None,
    val: Annotated[
        str, typer.Option(help="How much goes to val.parquet: a number of tasks, or a share as 0.1 or 10%.")
    ] = "0.1",
    num_samples: Annotated[
        int | None, typer.Option(min=1, help="How many tasks are drawn in all; by default every one.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the drawing, the division and the order.")] = 0,
    system_prompt: Annotated[
        list[str] | None,
        typer.Option(
            metavar="[NAME=]FILE",
            help="A text to use as the system prompt, instead of the environment's own. With several "
            "environments say for which, and repeat it.",
        ),
    ] = None,
    system_prompt_from_traj: Annotated[
        Path | None,
        typer.Option(
            help="A file of AgentTraj, or a folder of them: its first message becomes the system prompt, as "
            "models trained on AgentGym's prompts want. Goes with --parser agentgym."
        ),
    ] = None,
    server: Annotated[
        list[str] | None,
        typer.Option(
            metavar="[NAME=]URL",
            help="URL of the server, or several with commas, to write into the rows; by default the one that "
            "is configured where the training runs. With several environments say for which, and repeat it.",
        ),
    ] = None,
    split: Annotated[
        str | None, typer.Option(help="Which split the tasks are of; by default the first, in a file any.")
    ] = None,
    action_format: ActionFormat = "react",
    parser: Parser = "default",
    on_unknown: OnUnknown = None,
    max_turns: MaxTurns = None,
    timeout: Timeout = DEFAULT_TIMEOUT,
    force: Annotated[bool, typer.Option("--force", help="Replace the files that are there.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """Write the tasks that verl trains on by reinforcement.

    A row holds the system prompt and says which task of which environment is to be played; the first
    observation comes when it is played. No server is asked.
    """
    modules = _import(sources)
    division = library.divide(
        _items(sources, tasks, split), val=library.parse_val(val), seed=seed, num_samples=num_samples
    )
    names = list(dict.fromkeys(item.environment.name for item in (*division.train, *division.val)))
    options: dict[str, Any] = {"action_format": action_format, "parser": parser}
    given = {"split": split, "on_unknown": on_unknown}
    options |= {name: value for name, value in given.items() if value is not None}
    if max_turns is not None:
        options["max_turns"] = max_turns or None
    if timeout != DEFAULT_TIMEOUT:
        options["timeout"] = timeout
    servers = _by_name("--server", server, names)
    recipes = {}
    prompts = _prompts(system_prompt, system_prompt_from_traj, names)
    for name in names:
        kwargs = options | ({"server": servers[name]} if name in servers else {})
        own = library.own_prompt(find(name), kwargs)  # also where another is used: it checks the options
        recipes[name] = Recipe(kwargs, prompts.get(name, own), modules.get(name, Recipe.module))
    files = {"train": division.train, "val": division.val}
    written = library.write(
        out_,
        {part: library.rows(items, recipes) for part, items in files.items() if items},
        library.schema(),
        force=force,
    )
    summary = _summary(division, recipes, written)
    if as_json:
        print_json(summary | {"seed": seed})
    else:
        _print(summary)


def _import(sources: Sequence[str]) -> dict[str, str]:
    """Import the modules that sources name, as ``gymnasium.make`` does; return them by their environment."""
    modules = {}
    for source in sources:
        module, colon, name = source.partition(":")
        if colon and not Path(source).exists():
            try:
                importlib.import_module(module)
            except (ImportError, ValueError, TypeError) as error:
                raise BadOption(f"cannot import {module!r}, the module of {source!r}: {error}") from error
            modules[find(name).name] = module
    return modules


def _items(sources: Sequence[str], tasks: str | None, split: str | None) -> list[Item]:
    items: list[Item] = []
    ranged = False
    for source in sources:
        try:
            environment = find(source)
        except UnknownEnvironment as error:
            path = Path(source)
            if not path.exists():
                raise BadOption(f"{source!r} is no file and no folder, and {error}") from None
            items += library.read_items(path, split)
        else:
            ranged = True
            items += library.items_of(environment, tasks or "all", split)
    if tasks is not None and not ranged:
        raise BadOption("--tasks is for an environment; a file says by itself which tasks it means")
    return items


def _prompts(
    files: Sequence[str] | None, trajectories: Path | None, names: Sequence[str]
) -> Mapping[str, str]:
    """Return the prompts that stand in place of the environments' own."""
    if trajectories is None:
        return {name: _text(Path(file)) for name, file in _by_name("--system-prompt", files, names).items()}
    if files:
        raise BadOption("--system-prompt and --system-prompt-from-traj say the same thing: give one of them")
    prompts = library.read_prompts(trajectories)
    missing = [name for name in names if name not in prompts]
    if missing:
        raise BadOption(f"{trajectories} holds no trajectory of {', '.join(missing)}")
    return prompts


def _by_name(option: str, values: Iterable[str] | None, names: Sequence[str]) -> dict[str, str]:
    """Return the values of a repeated option ``[NAME=]VALUE`` by the name of the environment."""
    found: dict[str, str] = {}
    for value in values or ():
        head, equals, tail = value.partition("=")
        try:
            name, text = (find(head).name, tail) if equals else (None, value)
        except UnknownEnvironment:
            name, text = None, value
        if name is None and len(names) != 1:
            raise BadOption(
                f"{option} is for one environment of {', '.join(names)}: say which, as in {names[0]}=..."
            )
        name = name or names[0]
        if name not in names:
            raise BadOption(f"{option} is given for {name}, of which there are no tasks here")
        if name in found:
            raise BadOption(f"{option} is given twice for {name}")
        found[name] = text
    return found


def _text(file: Path) -> str:
    try:
        text = file.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise BadOption(f"cannot read {file}: {error}") from error
    if not text.strip():
        raise BadOption(f"{file} is empty")
    return text.removesuffix("\n")  # by which a text file ends, and which nobody meant


def _summary(
    division: Division, recipes: Mapping[str, Recipe], written: Mapping[str, Path]
) -> dict[str, Any]:
    parts = {"train": division.train, "val": division.val}
    counts = {part: Counter(item.environment.name for item in items) for part, items in parts.items()}
    lengths = [
        len(recipes[item.environment.name].system_prompt) for items in parts.values() for item in items
    ]
    return {
        "rows": {part: len(items) for part, items in parts.items()},
        "environments": {
            find(name).id: {
                "train": counts["train"][name],
                "val": counts["val"][name],
                "prompt_chars": len(recipe.system_prompt),
            }
            for name, recipe in recipes.items()
        },
        "duplicates": division.duplicates,
        "prompt_chars": {"mean": round(sum(lengths) / len(lengths), 1), "max": max(lengths)},
        "files": {part: str(path) for part, path in written.items()},
    }


def _print(summary: Mapping[str, Any]) -> None:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("environment", no_wrap=True)
    for heading in ("train", "val", "prompt characters"):
        table.add_column(heading, justify="right", no_wrap=True)
    for name, each in summary["environments"].items():
        table.add_row(name, *(f"{each[column]:,}" for column in ("train", "val", "prompt_chars")))
    out.print(table)
    rows, characters = summary["rows"], summary["prompt_chars"]
    out.print(
        f"{rows['train']:,} rows for training and {rows['val']:,} for validation; a prompt has "
        f"{characters['mean']:,} characters on average, {characters['max']:,} at most.",
        soft_wrap=True,
    )
    if summary["duplicates"]:
        out.print(f"Left out, being there twice: {summary['duplicates']:,}.")
    out.print(f"Written to {' and '.join(summary['files'].values())}.", soft_wrap=True)
