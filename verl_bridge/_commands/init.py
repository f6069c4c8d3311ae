"""``agentgym verl init``: create a folder for reinforcement learning with verl."""

from __future__ import annotations

import dataclasses
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from rich.text import Text

from agentgym_gym.commands import Force, GivenOptions, Option, command, out
from agentgym_gym.errors import MissingExtra
from verl_bridge import recipes
from verl_bridge._commands.machine import DEFAULTS, resolved, writing
from verl_bridge._commands.selections import (
    ENVIRONMENT,
    TASKS,
    SelectionOptions,
    env_arguments,
    selections_of,
)
from verl_bridge._commands.task_rows import print_shares, rows_of, with_turn_limits
from verl_bridge.recipes._amount import amount_of, describe
from verl_bridge.recipes._options import EPISODES, MACHINE, TRAINING

if TYPE_CHECKING:
    from verl_bridge._commands.selections import EnvSelection

__all__ = ["InitOptions", "init"]


@dataclass(frozen=True, kw_only=True)
class InitOptions(SelectionOptions):
    """The options of ``agentgym verl init``: a recipe's, and the command's own."""

    out_: Annotated[Path, Option("output folder", "Output", usual=True)]
    choices: Annotated[
        Mapping[str, Any], GivenOptions(recipes.RlRecipe, defaults={**DEFAULTS, "preset": "train"})
    ]
    tools: Annotated[
        Literal["none", "native"],
        Option(
            "whether the model writes actions or calls the environment's tools",
            EPISODES,
            argument="tool_calls",
        ),
    ] = "none"
    force: Force = False


@command(
    InitOptions,
    groups={TASKS: (), "Output": ("force",), TRAINING: (), EPISODES: (), MACHINE: (), ENVIRONMENT: ()},
    examples=(
        "agentgym verl init --env TextCraft --preset test --out runs/craft",
        "agentgym verl init --env Maze=2 --env TextCraft=1 --out runs/two",
    ),
)
def init(options: InitOptions) -> None:
    """Write a folder for reinforcement learning with verl.

    The folder contains the settings, the agent loop, the tasks, a script that starts the training, and a
    README. No server is contacted.

    Preset train makes 300 steps of 32 tasks, 8 episodes each, and sizes memory settings by an estimate, which
    is printed. Preset test is 1 epoch of a few tasks; full is 15 epochs of all tasks, with few updates. The
    batches and epochs of --like apply with presets train and full.

    To train in several environments at once, repeat --env; weights are their shares of the tasks, 1 by
    default. Options marked [ENV=] then need the name of an environment, as in --tasks Maze=0:50, and can be
    repeated. By default, at most 100 tasks of each environment are for validation.

    Tasks are ids and ranges: 3, 1,2,5, 0:50 (without 50) or 10:, or all, or a file of AgentGym's item ids. If
    an environment has no numbered tasks, they are seeds, and all means 1000. Ids must be of the split train
    unless --split names another; a file may name tasks of any split. With --like, a file of item ids counts
    as the tasks of the paper.
    """
    selections = selections_of(options, native_tools=options.tools == "native")
    with writing(options.out_):
        recipe = with_turn_limits(_recipe(options, selections), selections)
        tasks = rows_of(recipe, selections)
        recipe = dataclasses.replace(recipe, val_tasks=len(tasks.parts["val"]) // len(selections))
        written = recipes.write(
            recipe, options.out_, shares=tasks.shares, notes=tasks.notes, force=options.force
        )
        for part, rows in tasks.parts.items():
            written.append(options.out_ / "data" / f"{part}.parquet")
            recipes.write_rows(written[-1], rows)
    for path in written:
        out.print(f"wrote {path}")
    if tasks.shares:
        print_shares(tasks.shares)
    amount = amount_of(recipe, len(tasks.parts["train"]), len(tasks.parts["val"]))
    for line in (*tasks.notes, *describe(recipe, amount)):
        out.print(Text(line))
    out.print(f"Next: agentgym verl check {shlex.quote(str(options.out_))}")


def _recipe(options: InitOptions, selections: Sequence[EnvSelection]) -> recipes.RlRecipe:
    """Return the recipe for the options.

    Raises:
        MissingExtra: PyYAML is not installed, which is required to read published settings.
        BadOption: An option is invalid, or two options are incompatible.
    """
    native = options.tools == "native"
    try:
        return recipes.RlRecipe(**resolved(options.choices), **env_arguments(selections), tool_calls=native)
    except ModuleNotFoundError as error:
        if error.name != "yaml":
            raise
        raise MissingExtra("Reading published settings", extra="cli", module="yaml") from error
