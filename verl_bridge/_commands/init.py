"""``agentgym verl init``: create a folder for reinforcement learning with verl."""

from __future__ import annotations

import dataclasses
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer
from rich.text import Text

from agentgym_gym.commands import Force, command, out
from agentgym_gym.errors import BadOption, MissingExtra
from verl_bridge import recipes
from verl_bridge._commands.machine import Checkpointing, Gpus, Version, installed_verl, model_of
from verl_bridge._commands.selections import EnvOptions, env_arguments, selections_of
from verl_bridge._commands.task_rows import print_shares, rows_of, with_turn_limits
from verl_bridge.recipes._amount import amount_of, describe

if TYPE_CHECKING:
    from verl_bridge._commands.selections import EnvSelection

__all__ = ["InitOptions", "init"]


@dataclass(frozen=True, kw_only=True)
class InitOptions(EnvOptions):
    """The options of ``agentgym verl init``."""

    out_: Annotated[Path, typer.Option("--out", help="output folder")]
    version: Version = None
    algorithm: Annotated[
        Literal["grpo", "ppo", "rloo", "reinforce_plus_plus", "remax", "gigpo"] | None,
        typer.Option(help="training algorithm", show_default="that of --like, else grpo"),
    ] = None
    engine: Annotated[Literal["sglang", "vllm"], typer.Option(help="inference engine")] = "sglang"
    preset: Annotated[
        Literal["train", "test", "full"],
        typer.Option(help="amount of training; test is short, full 15 epochs"),
    ] = "train"
    integration: Annotated[
        Literal["agent-loop", "interaction"],
        typer.Option(help="integration with verl; interaction is for verl 0.7 only"),
    ] = "agent-loop"
    like: Annotated[
        Literal["agentgym-rl", "scalinginter-rl", "gigpo"] | None,
        typer.Option(help="paper whose published settings are the defaults"),
    ] = None
    model: Annotated[
        str | None,
        typer.Option(
            help="model folder, or name on the hub",
            show_default="that of --like, else Qwen/Qwen2.5-3B-Instruct",
        ),
    ] = None
    turns: Annotated[
        str | None,
        typer.Option(
            metavar="N[,N]",
            help="turn limit of all environments; several are training stages",
            show_default="per environment",
        ),
    ] = None
    turns_every: Annotated[
        int | None,
        typer.Option(
            min=1, help="training steps per stage of --turns", show_default="those of --like, else 100"
        ),
    ] = None
    kl_coef: Annotated[
        float | None,
        typer.Option(
            min=0,
            help="coefficient of the KL penalty; 0 for no reference policy",
            show_default="that of --like, else 0.001",
        ),
    ] = None
    trainer: Annotated[
        Literal["sync", "colocate_async", "separate_async"],
        typer.Option(help="verl 0.9's trainer; the asynchronous ones overlap generation and training"),
    ] = "sync"
    gpus: Gpus = 4
    rollout_gpus: Annotated[
        int | None,
        typer.Option(min=1, help="GPUs that only generate, for separate_async", show_default="half"),
    ] = None
    offload: Annotated[
        bool | None,
        typer.Option(
            help="offload unused weights and states to CPU memory",
            show_default="by the memory estimate for train, else on",
        ),
    ] = None
    checkpointing: Checkpointing = True
    gpu_memory: Annotated[
        float, typer.Option(metavar="GB", min=1, help="memory of a GPU, for the memory estimate")
    ] = 80.0
    thinking: Annotated[
        Literal["off", "hide", "keep"] | None,
        typer.Option(
            help="the model's reasoning: off, hidden from the environment, or kept",
            show_default="by model name",
        ),
    ] = None
    lora: Annotated[
        int, typer.Option(metavar="RANK", min=0, help="train adapters of this rank; 0 for all weights")
    ] = 0
    rollout_correction: Annotated[
        bool,
        typer.Option("--rollout-correction", help="importance-sample rollout tokens (rollout correction)"),
    ] = False
    seed: Annotated[
        int | None, typer.Option(min=0, help="seed of the order of tasks", show_default="verl's")
    ] = None
    force: Force = False


@command(
    InitOptions,
    groups={
        "Environments and tasks": ("env", "tasks", "split", "val", "val_split", "seed"),
        "Output": ("out_", "force"),
        "Training": (
            *("model", "like", "preset", "algorithm", "kl_coef", "lora", "rollout_correction"),
            *("trainer", "turns", "turns_every", "thinking", "tools"),
        ),
        "Machine": (
            *("version", "engine", "integration", "gpus", "rollout_gpus", "gpu_memory"),
            *("offload", "checkpointing"),
        ),
        "Environment": ("server", "env_kwargs", "system_prompt", "isolate", "success_at"),
    },
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
    selections = selections_of(options)
    try:
        recipe = with_turn_limits(_recipe(options, selections), selections)
        tasks = rows_of(recipe, selections)
        recipe = dataclasses.replace(recipe, val_tasks=len(tasks.parts["val"]) // len(selections))
        written = recipes.write(
            recipe, options.out_, shares=tasks.shares, notes=tasks.notes, force=options.force
        )
        for part, rows in tasks.parts.items():
            written.append(options.out_ / "data" / f"{part}.parquet")
            recipes.write_rows(written[-1], rows)
    except (ValueError, FileExistsError) as error:
        raise BadOption(str(error)) from error
    except OSError as error:
        raise BadOption(f"cannot write to {options.out_}: {error.strerror or error}") from error
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
        ValueError: An option is invalid, or two options are incompatible.
    """
    try:
        return recipes.RlRecipe(
            verl=options.version or installed_verl(),
            algorithm=options.algorithm or "",
            engine=options.engine,
            preset=options.preset,
            integration=options.integration,
            model=None if options.model is None else model_of(options.model),
            trainer=options.trainer,
            gpus=options.gpus,
            rollout_gpus=options.rollout_gpus,
            turns=_turns(options.turns),
            turns_every=options.turns_every,
            kl_coef=options.kl_coef,
            like=options.like,
            offload=options.offload,
            checkpointing=options.checkpointing,
            gpu_memory=options.gpu_memory,
            thinking=options.thinking,
            lora=options.lora,
            rollout_correction=options.rollout_correction,
            seed=options.seed,
            tool_calls=options.tools == "native",
            **env_arguments(selections),
        )
    except ModuleNotFoundError as error:
        if error.name != "yaml":
            raise
        raise MissingExtra("Reading published settings", extra="cli", module="yaml") from error


def _turns(text: str | None) -> tuple[int, ...] | None:
    if text is None:
        return None
    try:
        return tuple(int(number) for number in text.split(","))
    except ValueError:
        raise BadOption(f"--turns {text!r:.80} should be turn limits, such as 20 or 10,20,30") from None
