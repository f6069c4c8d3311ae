"""``agentgym verl sft``: create a folder for fine-tuning on trajectories with verl."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, get_args

import typer

from agentgym_gym._cli.console import out
from agentgym_gym._cli.declared import command
from agentgym_gym._cli.options import Force  # noqa: TC001 - typer reads it at run time
from agentgym_gym._cli.reformat import print_unparsed, reformatted
from agentgym_gym._cli.resolve_env import TASKS_HELP, complete_name, resolve
from agentgym_gym._cli.trajectories import (
    Best,
    MinScore,
    PromptForm,
    Seed,
    Sources,
    Successful,
    choose,
    divide,
    print_summary,
    write_parts,
)
from agentgym_gym._cli.verl import Checkpointing, Gpus, Version, installed_verl, model_of
from agentgym_gym._options import FormatName
from agentgym_gym.data import SourceFormat  # noqa: TC001 - typer reads it at run time
from agentgym_gym.errors import BadOption

if TYPE_CHECKING:
    from agentgym_gym.data import Trajectory, Unparsed
    from verl_bridge.recipes import Evaluation, SftRecipe

__all__ = ["SftOptions", "sft"]


@dataclass(frozen=True, kw_only=True)
class SftOptions:
    """The options of ``agentgym verl sft``."""

    sources: Sources
    out_: Annotated[Path, typer.Option("--out", help="Folder to write to.")]
    model: Annotated[str, typer.Option(help="Path of a model's folder, or its name on the hub.")] = (
        "Qwen/Qwen2.5-3B-Instruct"
    )
    version: Version = None
    preset: Annotated[
        Literal["test", "full"],
        typer.Option(help="How much: test is 1 epoch in batches of 8, full is 3 epochs in batches of 32."),
    ] = "test"
    gpus: Gpus = 4
    batch: Annotated[
        int | None, typer.Option(min=1, help="Games in a step; by default that of the preset.")
    ] = None
    epochs: Annotated[
        int | None, typer.Option(min=1, help="Passes over the games; by default those of the preset.")
    ] = None
    learning_rate: Annotated[float, typer.Option(help="The learning rate.")] = 1e-5
    max_length: Annotated[int, typer.Option(min=1, help="Tokens of a game at most.")] = 8192
    successful: Successful = False
    min_score: MinScore = None
    best: Best = None
    action_format: Annotated[
        FormatName | None,
        typer.Option(
            metavar="FORMAT", help="The format that is learned: put the replies into it, if they are not."
        ),
    ] = None
    from_: Annotated[
        SourceFormat | None,
        typer.Option(
            "--from",
            metavar="FORMAT",
            help="The format that the replies are in, where the source does not say it; agentgym for ReAct "
            "as AgentGym's own client reads it.",
        ),
    ] = None
    val: Annotated[
        str | None,
        typer.Option(
            help="How many tasks are for validation: a number, or a share. By default a folder of "
            "agentgym data sft stays as it is divided; else none for preset test, a tenth for full."
        ),
    ] = None
    seed: Seed = 0
    prompt: PromptForm = "system"
    eval_: Annotated[
        list[str] | None,
        typer.Option(
            "--eval",
            metavar="ID",
            help="An environment that the model plays after the training; repeat it for several.",
            autocompletion=complete_name,
        ),
    ] = None
    eval_tasks: Annotated[str | None, typer.Option(help=TASKS_HELP + " By default all.")] = None
    eval_engine: Annotated[
        Literal["sglang", "vllm", "transformers"], typer.Option(help="What serves the model then.")
    ] = "vllm"
    eval_options: Annotated[
        str, typer.Option(metavar="'WORDS'", help="More options of that agentgym eval.")
    ] = ""
    offload: Annotated[
        bool,
        typer.Option(help="Whether the optimizer and what it changes wait in the machine's memory."),
    ] = False
    checkpointing: Checkpointing = True
    force: Force = False


@command(SftOptions)
def sft(options: SftOptions) -> None:
    """Write a folder from which verl fine-tunes on what was played.

    Settings, the games as rows, a script that starts it, and a README. What is left out is that which
    agentgym data sft leaves out. Replies that are marked as not to be trained on are not.
    """
    from verl_bridge import recipes  # noqa: PLC0415 - no other command waits for this import

    parts, left_out = _games(options)
    try:
        recipe = _recipe(options, parts)
        for part, rows in parts.items():
            if (rows or part == "train") and len(rows) < recipe.games:
                raise BadOption(
                    f"{len(rows)} games in {part} are less than a batch of {recipe.games}, and verl leaves "
                    "out what does not fill one: give more games, or another --batch or --val"
                )
        written = recipes.write_sft(recipe, options.out_, force=options.force)
    except (ValueError, FileExistsError) as error:
        raise BadOption(str(error)) from error
    except OSError as error:
        raise BadOption(f"cannot write to {options.out_}: {error.strerror or error}") from error
    summary = write_parts(
        parts, options.out_ / "data", left_out=left_out, seed=options.seed, force=options.force
    )
    for path in written:
        out.print(f"wrote {path}", soft_wrap=True)
    print_summary(summary, reads_marks=True)
    out.print(f"Next: agentgym verl check {shlex.quote(str(options.out_))}", soft_wrap=True)


def _games(options: SftOptions) -> tuple[dict[str, list[Trajectory]], Counter[str]]:
    """Return the games by ``"train"`` and ``"val"``, and the number of dropped games by reason."""
    from verl_bridge.recipes import SFT_PRESETS  # noqa: PLC0415 - no other command waits for this import

    left_out: Counter[str] = Counter()
    parts: dict[str, list[Trajectory]] = {}
    for part, paths in _parts(options.sources, divided=options.val is None).items():
        chosen = choose(paths, successful=options.successful, min_score=options.min_score, best=options.best)
        left_out += Counter(chosen.left_out)
        parts[part] = _in_format(chosen.kept, options.from_, options.action_format)
    seed, prompt = options.seed, options.prompt
    if "val" in parts:
        parts = {part: divide(of, val="0", seed=seed, prompt=prompt)["train"] for part, of in parts.items()}
        return parts, left_out
    share = "0.1" if SFT_PRESETS[options.preset].each_epoch else "0"
    if options.val is not None:
        share = options.val
    return divide(parts["train"], val=share, seed=seed, prompt=prompt), left_out


def _recipe(options: SftOptions, parts: Mapping[str, Sequence[Trajectory]]) -> SftRecipe:
    """Return the recipe for the options and games.

    Raises:
        ValueError: An option is invalid, or two options are incompatible.
    """
    from verl_bridge import recipes  # noqa: PLC0415 - no other command waits for this import

    games = [game for of in parts.values() for game in of]
    return recipes.SftRecipe(
        model=model_of(options.model),
        name=f"{_name(games)}-sft-{options.preset}",
        verl=options.version or installed_verl(recipes.VERSIONS),
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
            _evaluation(name, games, options.eval_tasks, options.eval_options) for name in options.eval_ or []
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


def _in_format(
    games: Sequence[Trajectory], source: SourceFormat | None, target: FormatName | None
) -> list[Trajectory]:
    """Convert games to a format; report and drop games that cannot be converted."""
    if target is None:
        return list(games)
    left: list[Trajectory] = []
    unparsed: list[Unparsed] = []
    for game in games:
        if game.action_format == target:
            left.append(game)
            continue
        done = reformatted(game, source, target, keep_unparsed=False)
        unparsed += done.unparsed
        left += [done.trajectory] if done.trajectory is not None else []
    print_unparsed(unparsed)
    if len(left) < len(games):
        out.print(f"Left out for such a reply: {len(games) - len(left):,}.", soft_wrap=True)
    if not left:
        raise BadOption(f"none of the {len(games)} games can be put into the format {target}")
    return left


def _name(games: Sequence[Trajectory]) -> str:
    """Return the environment's name if all games share one, otherwise "games"."""
    names = {game.env_id.rpartition("/")[2] for game in games}
    return names.pop() if len(names) == 1 else "games"


def _evaluation(name: str, games: Sequence[Trajectory], tasks: str | None, options: str) -> Evaluation:
    """Return the evaluation to run after training, in the trained format if there is only one."""
    from verl_bridge.recipes import Evaluation  # noqa: PLC0415 - no other command waits for this import

    chosen = resolve(name)
    learned = [game for game in games if game.env_id == chosen.id] or games
    formats = {game.action_format for game in learned}
    words: list[str] = []
    if chosen.environment is not None and len(formats) == 1:
        (learned_format,) = formats
        if learned_format == "agentgym":
            words += ["--action-format", "react", "--parser", "agentgym"]
        elif learned_format in get_args(FormatName):
            words += ["--action-format", str(learned_format)]
    if tasks is not None:
        words += ["--tasks", str(Path(tasks).resolve()) if Path(tasks).exists() else tasks]
    return Evaluation(name, (*words, *shlex.split(options)))
