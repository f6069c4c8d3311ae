"""``agentgym verl sft``: create a folder for fine-tuning on trajectories with verl."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, get_args

import typer

from agentgym_gym import FormatName
from agentgym_gym.commands import (
    TASKS_HELP,
    FineTuningOptions,
    SourceFormatOption,
    command,
    complete_env,
    convert,
    out,
    print_summary,
    resolve,
)
from agentgym_gym.errors import BadOption
from verl_bridge import recipes
from verl_bridge._commands.machine import Checkpointing, Gpus, Version, installed_verl, model_of

if TYPE_CHECKING:
    from agentgym_gym.data import Trajectory

__all__ = ["SftOptions", "sft"]


@dataclass(frozen=True, kw_only=True)
class SftOptions(FineTuningOptions):
    """The options of ``agentgym verl sft``."""

    model: Annotated[str, typer.Option(help="model folder, or name on the hub")] = "Qwen/Qwen2.5-3B-Instruct"
    version: Version = None
    preset: Annotated[
        Literal["test", "full"],
        typer.Option(help="training size, which sets --batch and --epochs"),
    ] = "test"
    gpus: Gpus = 4
    batch: Annotated[
        int | None,
        typer.Option(min=1, help="trajectories per training step", show_default="8 for test, 32 for full"),
    ] = None
    epochs: Annotated[
        int | None,
        typer.Option(min=1, help="passes over the trajectories", show_default="1 for test, 3 for full"),
    ] = None
    learning_rate: Annotated[float, typer.Option(help="learning rate")] = 1e-5
    max_length: Annotated[int, typer.Option(min=1, help="maximum number of tokens per trajectory")] = 8192
    action_format: Annotated[
        FormatName | None,
        typer.Option(
            metavar="FORMAT",
            help="target format; replies in other formats are converted",
            show_default="as in the source",
        ),
    ] = None
    from_: SourceFormatOption = None
    val: Annotated[
        str | None,
        typer.Option(
            help="validation size: number of tasks, or share (0.1 or 10%)",
            show_default="the source's split, else 0 for test, 0.1 for full",
        ),
    ] = None
    eval_: Annotated[
        list[str] | None,
        typer.Option(
            "--eval",
            metavar="ID",
            help="environment to evaluate in after training; repeatable",
            autocompletion=complete_env,
        ),
    ] = None
    eval_tasks: Annotated[
        str | None,
        typer.Option(help=TASKS_HELP, show_default="those of the split test, else dev, else the first"),
    ] = None
    eval_engine: Annotated[
        Literal["sglang", "vllm", "transformers"], typer.Option(help="inference engine of the evaluation")
    ] = "vllm"
    eval_options: Annotated[str, typer.Option(metavar="'WORDS'", help="more options of agentgym eval")] = ""
    offload: Annotated[
        bool,
        typer.Option(help="offload the optimizer and its parameters to CPU memory"),
    ] = False
    checkpointing: Checkpointing = True


@command(
    SftOptions,
    groups={
        "Trajectories": (
            *("successful", "min_score", "best", "split", "val", "seed"),
            *("from_", "action_format", "prompt", "system_prompt"),
        ),
        "Output": ("out_", "force"),
        "Training": ("model", "preset", "batch", "epochs", "learning_rate", "max_length"),
        "Machine": ("version", "gpus", "offload", "checkpointing"),
        "Evaluation after the training": ("eval_", "eval_tasks", "eval_engine", "eval_options"),
    },
    examples=(
        "agentgym verl sft runs/oracle --out runs/sft",
        "agentgym verl sft runs/oracle --successful --eval TextCraft --out runs/sft",
    ),
)
def sft(options: SftOptions) -> None:
    """Write a folder for supervised fine-tuning with verl.

    The folder contains the settings, the trajectories as rows, a script that starts the training, and a
    README. It leaves out the same trajectories as agentgym data sft. The training excludes replies that are
    marked as excluded from training.

    Preset test is 1 epoch in batches of 8; full is 3 epochs in batches of 32. A folder of agentgym data sft
    keeps its split, unless --val is given. With --from agentgym, replies are parsed as AgentGym's own client
    does. With --prompt turns, the prompt is a user message that is answered by OK. With several environments,
    put NAME= before the value of --system-prompt, and repeat it for each of them.

    Tasks are ids and ranges: 3, 1,2,5, 0:50 (without 50) or 10:, or all, or a file of AgentGym's item ids. If
    an environment has no numbered tasks, they are seeds, and all means 1000.
    """
    parts, left_out = _trajectories(options)
    try:
        recipe = _recipe(options, parts)
        for part, rows in parts.items():
            if (rows or part == "train") and len(rows) < recipe.games:
                raise BadOption(
                    f"{len(rows)} trajectories in {part} do not fill a batch of {recipe.games}, and verl "
                    "drops incomplete batches: give more trajectories, or another --batch or --val"
                )
        written = recipes.write_sft(recipe, options.out_, force=options.force)
    except (ValueError, FileExistsError) as error:
        raise BadOption(str(error)) from error
    except OSError as error:
        raise BadOption(f"cannot write to {options.out_}: {error.strerror or error}") from error
    summary = options.write(parts, options.out_ / "data", left_out)
    for path in written:
        out.print(f"wrote {path}")
    print_summary(summary, reads_marks=True)
    out.print(f"Next: agentgym verl check {shlex.quote(str(options.out_))}")


def _trajectories(options: SftOptions) -> tuple[dict[str, list[Trajectory]], Counter[str]]:
    """Return the trajectories by ``"train"`` and ``"val"``, and the number of dropped ones by reason."""
    left_out: Counter[str] = Counter()
    parts: dict[str, list[Trajectory]] = {}
    for part, paths in _parts(options.sources, divided=options.val is None).items():
        selected = options.select(paths)
        left_out += Counter(selected.left_out)
        kept = list(selected.kept)
        if options.action_format is not None:
            kept = convert(kept, options.from_, options.action_format)
        parts[part] = options.with_prompts(kept)
    if "val" in parts:
        return {part: options.divide(kept, "0")["train"] for part, kept in parts.items()}, left_out
    share = "0.1" if recipes.SFT_PRESETS[options.preset].each_epoch else "0"
    return options.divide(parts["train"], share if options.val is None else options.val), left_out


def _recipe(options: SftOptions, parts: Mapping[str, Sequence[Trajectory]]) -> recipes.SftRecipe:
    """Return the recipe for the options and trajectories.

    Raises:
        ValueError: An option is invalid, or two options are incompatible.
    """
    trajectories = [each for part in parts.values() for each in part]
    return recipes.SftRecipe(
        model=model_of(options.model),
        name=f"{_name(trajectories)}-sft-{options.preset}",
        verl=options.version or installed_verl(),
        preset=options.preset,
        gpus=options.gpus,
        batch=options.batch,
        epochs=options.epochs,
        learning_rate=options.learning_rate,
        max_length=options.max_length,
        validation=bool(parts["val"]),
        offload=options.offload,
        checkpointing=options.checkpointing,
        evaluations=tuple(
            _evaluation(name, trajectories, options.eval_tasks, options.eval_options)
            for name in options.eval_ or []
        ),
        eval_engine=options.eval_engine,
    )


def _parts(sources: Sequence[Path], *, divided: bool) -> dict[str, list[Path]]:
    """Return the sources by ``"train"`` and ``"val"``.

    Args:
        sources: The paths from the command line.
        divided: Whether to keep an existing division, if all sources are folders with a ``train.parquet`` and
            a ``val.parquet``.
    """
    names = ("train", "val")
    if divided and all((each / f"{name}.parquet").is_file() for each in sources for name in names):
        return {name: [each / f"{name}.parquet" for each in sources] for name in names}
    return {"train": list(sources)}


def _name(trajectories: Sequence[Trajectory]) -> str:
    """Return the environment's name if all trajectories share one, otherwise "games"."""
    names = {each.env_id.rpartition("/")[2] for each in trajectories}
    return names.pop() if len(names) == 1 else "games"


def _evaluation(
    name: str, trajectories: Sequence[Trajectory], tasks: str | None, options: str
) -> recipes.Evaluation:
    """Return the evaluation to run after training, in the trained format if there is only one."""
    chosen = resolve(name)
    learned = [each for each in trajectories if each.env_id == chosen.id] or trajectories
    formats = {each.action_format for each in learned}
    words: list[str] = []
    if chosen.environment is not None and len(formats) == 1:
        (learned_format,) = formats
        if learned_format == "agentgym":
            words += ["--action-format", "react", "--parser", "agentgym"]
        elif learned_format in get_args(FormatName):
            words += ["--action-format", str(learned_format)]
    if tasks is not None:
        words += ["--tasks", str(Path(tasks).resolve()) if Path(tasks).exists() else tasks]
    return recipes.Evaluation(name, (*words, *shlex.split(options)))
