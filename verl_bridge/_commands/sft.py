"""``agentgym verl sft``: create a folder for fine-tuning on trajectories with verl."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_args

from agentgym_gym import FormatName
from agentgym_gym.commands import (
    TASKS_HELP,
    FineTuningOptions,
    GivenOptions,
    Option,
    SourceFormatOption,
    command,
    convert,
    out,
    print_summary,
    resolve,
)
from agentgym_gym.errors import ArgumentName, BadOption
from verl_bridge import recipes
from verl_bridge._commands.machine import DEFAULTS, resolved, writing
from verl_bridge.recipes._options import MACHINE, TRAINING

if TYPE_CHECKING:
    from agentgym_gym.data import Trajectory

__all__ = ["SftOptions", "sft"]

_TRAJECTORIES, _EVALUATION = "Trajectories", "Evaluation after the training"


@dataclass(frozen=True, kw_only=True)
class SftOptions(FineTuningOptions):
    """The options of ``agentgym verl sft``: a recipe's, and the command's own."""

    choices: Annotated[Mapping[str, Any], GivenOptions(recipes.SftRecipe, defaults=DEFAULTS)]
    action_format: Annotated[
        FormatName | None,
        Option(
            "target format; replies in other formats are converted",
            _TRAJECTORIES,
            default="as in the source",
            metavar="FORMAT",
        ),
    ] = None
    from_: SourceFormatOption = None
    val: Annotated[
        str | None,
        Option(
            "validation size: number of tasks, or share (0.1 or 10%)",
            _TRAJECTORIES,
            default="the source's split, else 0 for test, 0.1 for full",
        ),
    ] = None
    eval_: Annotated[
        list[str] | None,
        Option(
            "environment to evaluate in after training; repeatable",
            _EVALUATION,
            metavar="ID",
            completes="environment",
        ),
    ] = None
    eval_tasks: Annotated[
        str | None,
        Option(TASKS_HELP, _EVALUATION, default="the split test, else dev, else the first"),
    ] = None
    eval_options: Annotated[
        Sequence[str], Option("more options of agentgym eval", _EVALUATION, metavar="'WORDS'", values="words")
    ] = ()


@command(
    SftOptions,
    groups={
        _TRAJECTORIES: (
            *("successful", "min_score", "best", "split", "val", "seed"),
            *("from_", "action_format", "prompt", "system_prompt", "history"),
        ),
        "Output": ("out_", "force"),
        TRAINING: (),
        MACHINE: (),
        _EVALUATION: ("eval_", "eval_tasks", "eval_engine", "eval_options"),
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
    with writing(options.out_):
        recipe = _recipe(options, parts)
        for part, rows in parts.items():
            if (rows or part == "train") and len(rows) < recipe.games:
                problem = (
                    f"{len(rows)} trajectories in {part} do not fill a batch of {recipe.games}, and verl "
                    "drops incomplete batches: give more trajectories, or another "
                )
                raise BadOption((problem, ArgumentName("batch"), " or ", ArgumentName("val")))
        written = recipes.write_sft(recipe, options.out_, force=options.force)
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
    preset = options.choices.get("preset", recipes.SftRecipe.preset)
    share = "0.1" if recipes.SFT_PRESETS[preset].each_epoch else "0"
    return options.divide(parts["train"], share if options.val is None else options.val), left_out


def _recipe(options: SftOptions, parts: Mapping[str, Sequence[Trajectory]]) -> recipes.SftRecipe:
    """Return the recipe for the options and trajectories.

    Raises:
        BadOption: An option is invalid, or two options are incompatible.
    """
    trajectories = [each for part in parts.values() for each in part]
    recipe = recipes.SftRecipe(
        **resolved(options.choices),
        validation=bool(parts["val"]),
        evaluations=tuple(
            _evaluation(name, trajectories, options.eval_tasks, options.eval_options)
            for name in options.eval_ or []
        ),
    )
    return replace(recipe, name=f"{_name(trajectories)}-sft-{recipe.preset}")


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
    name: str, trajectories: Sequence[Trajectory], tasks: str | None, options: Sequence[str]
) -> recipes.Evaluation:
    """Return the evaluation to run after training, in the trained format and history if there is only one."""
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
    histories = {str(each.extra.get("history", "all")) for each in learned}
    if len(histories) == 1 and histories != {"all"} and "--history" not in options:
        words += ["--history", histories.pop()]
    if tasks is not None:
        words += ["--tasks", str(Path(tasks).resolve()) if Path(tasks).exists() else tasks]
    return recipes.Evaluation(name, (*words, *options))
