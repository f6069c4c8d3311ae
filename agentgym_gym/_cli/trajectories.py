"""``agentgym data sft`` and ``agentgym data agenttraj``: write trajectories as training data."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

import typer

from agentgym_gym import data as library
from agentgym_gym._cli.console import clean, out, print_json, print_table
from agentgym_gym._cli.options import Force, Json  # noqa: TC001 - typer reads them at run time
from agentgym_gym.catalogue import find
from agentgym_gym.data import Item, Seeds, Trajectory
from agentgym_gym.data._split import parse_val
from agentgym_gym.data._trajectories import as_system, as_turns
from agentgym_gym.errors import BadOption, UnknownEnvironment

if TYPE_CHECKING:
    from agentgym_gym.data import Selected

__all__ = [
    "Best",
    "MinScore",
    "PromptForm",
    "Seed",
    "Sources",
    "Successful",
    "agenttraj",
    "choose",
    "divide",
    "print_left_out",
    "print_summary",
    "sft",
    "write_parts",
]

Sources: TypeAlias = Annotated[
    list[Path],
    typer.Argument(
        metavar="SOURCE",
        help="The folder of a run, or of several; a file of AgentTraj, or a folder of such files; or "
        "parquet of agentgym data sft. Several are put together.",
    ),
]
Successful: TypeAlias = Annotated[
    bool, typer.Option("--successful", help="Only what solved its task; a source may not say whether it did.")
]
MinScore: TypeAlias = Annotated[float | None, typer.Option(help="Only what has this score or more.")]
Best: TypeAlias = Annotated[
    int | None,
    typer.Option("--best", min=1, help="Of each task at most so many, those that scored highest."),
]
Seed: TypeAlias = Annotated[int, typer.Option(min=0, help="Seed of the division and the order.")]
PromptForm: TypeAlias = Annotated[
    Literal["system", "turns"],
    typer.Option(
        help="How the prompt stands in a row: as a system message; or as in AgentGym's training, as a "
        "message of the user that is answered by OK."
    ),
]


def sft(
    sources: Sources,
    *,
    out_: Annotated[Path, typer.Option("--out", help="Folder for train.parquet and val.parquet.")],
    successful: Successful = False,
    min_score: MinScore = None,
    best: Best = None,
    val: Annotated[
        str,
        typer.Option(
            help="How many tasks go to val.parquet, with all that was played of them: a number, or a share "
            "as 0.1 or 10%."
        ),
    ] = "0.1",
    seed: Seed = 0,
    prompt: PromptForm = "system",
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Write played episodes as rows for fine-tuning by verl.

    Left out are episodes that a fault ended, those that are there already, and what the options ask to leave
    out; how many, and why, is printed. No task is in both files.
    """
    chosen = choose(sources, successful=successful, min_score=min_score, best=best)
    parts = divide(chosen.kept, val=val, seed=seed, prompt=prompt)
    summary = write_parts(parts, out_, left_out=chosen.left_out, seed=seed, force=force)
    if as_json:
        print_json(summary)
    else:
        print_summary(summary)


def agenttraj(
    sources: Sources,
    *,
    out_: Annotated[Path, typer.Option("--out", help="The file to write.")],
    successful: Successful = False,
    min_score: MinScore = None,
    best: Best = None,
    force: Force = False,
) -> None:
    """Write played episodes as an AgentTraj file.

    AgentGym's own trainer reads the file. A system prompt becomes the first message of the user, and is
    answered by OK. Scores stand in the file as reward and success.
    """
    chosen = choose(sources, successful=successful, min_score=min_score, best=best)
    count = library.write_agenttraj(out_, chosen.kept, force=force)
    print_left_out(chosen.left_out)
    out.print(f"{count:,} trajectories. Written to {out_}.", soft_wrap=True)


def print_left_out(left_out: Mapping[str, int]) -> None:
    """Print the number of dropped trajectories by reason."""
    for reason, count in left_out.items():
        out.print(f"Left out, {clean(reason)}: {count:,}.", soft_wrap=True)


def choose(
    sources: Sequence[Path], *, successful: bool, min_score: float | None, best: int | None
) -> Selected:
    """Read trajectories and select those to train on.

    Raises:
        BadOption: A source cannot be read, or no trajectories remain.
    """
    read = [each for path in sources for each in library.read_trajectories(path)]
    chosen = library.select(read, successful=successful, min_score=min_score, best=best)
    if not chosen.kept:
        why = ", ".join(f"{count} {reason}" for reason, count in chosen.left_out.items())
        raise BadOption(f"of {len(read)} trajectories none is left: {why}")
    return chosen


def _item(trajectory: Trajectory) -> Item:
    try:
        return Item(find(trajectory.env_id), trajectory.task_id)
    except UnknownEnvironment:
        return Item(Seeds(trajectory.env_id), trajectory.task_id)


def divide(
    trajectories: Iterable[Trajectory], *, val: str, seed: int, prompt: str
) -> dict[str, list[Trajectory]]:
    """Divide trajectories into ``"train"`` and ``"val"`` by task, so that no task is in both.

    Args:
        trajectories: The trajectories.
        val: The number or share of validation tasks, in the syntax of ``--val``.
        seed: Seed of the division and the order.
        prompt: The form of the prompt in a row: ``"system"`` or ``"turns"``.

    Raises:
        BadOption: There are too few tasks.
    """
    held = parse_val(val)
    change: Callable[[Trajectory], Trajectory] = as_system if prompt == "system" else as_turns
    of: dict[Any, list[Trajectory]] = {}
    items = {}
    for each in map(change, trajectories):
        item = _item(each)
        items[item.key] = item
        of.setdefault(item.key, []).append(each)
    division = library.divide(items.values(), val=held, seed=seed)
    return {
        part: [each for item in chosen for each in of[item.key]]
        for part, chosen in (("train", division.train), ("val", division.val))
    }


def write_parts(
    parts: Mapping[str, Sequence[Trajectory]],
    folder: Path,
    *,
    left_out: Mapping[str, int],
    seed: int,
    force: bool,
) -> dict[str, Any]:
    """Write trajectories as rows for fine-tuning.

    Args:
        parts: The trajectories by ``"train"`` and ``"val"``; no file is written for an empty part.
        folder: The target folder.
        left_out: The number of dropped trajectories by reason.
        seed: The seed that determined their order.
        force: Whether to replace existing files.

    Returns:
        A summary for :func:`print_summary`.

    Raises:
        BadOption: A file exists and ``force`` is false, or the folder cannot be written to.
    """
    written = library.write(
        folder,
        {part: library.sft_rows(each) for part, each in parts.items() if each},
        library.sft_schema(),
        force=force,
    )
    return {
        "rows": {part: len(each) for part, each in parts.items()},
        "environments": _environments(parts),
        "left_out": dict(left_out),
        **_replies([each for part in parts.values() for each in part]),
        "files": {part: str(path) for part, path in written.items()},
        "seed": seed,
    }


def _environments(parts: Mapping[str, Sequence[Trajectory]]) -> dict[str, dict[str, int]]:
    counts = {part: Counter(each.env_id for each in chosen) for part, chosen in parts.items()}
    return {
        env_id: {
            **{part: counts[part][env_id] for part in parts},
            "tasks": len({each.task_id for part in parts.values() for each in part if each.env_id == env_id}),
        }
        for env_id in sorted(set().union(*counts.values()))
    }


def _replies(trajectories: Sequence[Trajectory]) -> dict[str, Any]:
    """Return the statistics of the messages that matter for training."""
    replies = [said for each in trajectories for said in each.messages if said.role == "assistant"]
    return {
        "replies": len(replies),
        "replies_without_loss": sum(said.loss is False for said in replies),
        "with_tool_calls": sum(
            any("tool_calls" in said.extra for said in each.messages) for each in trajectories
        ),
        "longest_characters": max(sum(len(said.content) for said in each.messages) for each in trajectories),
    }


def print_summary(summary: Mapping[str, Any], *, reads_marks: bool = False) -> None:
    """Print the summary of the written files.

    Args:
        summary: The result of :func:`write_parts`.
        reads_marks: Whether the trainer skips replies that are marked as excluded from training.
    """
    table = [
        (name, *(f"{each[column]:,}" for column in ("tasks", "train", "val")))
        for name, each in summary["environments"].items()
    ]
    print_table(("environment", "tasks", "train", "val"), table, left={"environment"})
    rows = summary["rows"]
    out.print(
        f"{rows['train']:,} rows for training and {rows['val']:,} for validation, of {summary['replies']:,} "
        f"replies; the longest has {summary['longest_characters']:,} characters.",
        soft_wrap=True,
    )
    print_left_out(summary["left_out"])
    if summary["replies_without_loss"]:
        then = "" if reads_marks else ", and verl, which reads no such mark, trains on them"
        out.print(
            f"{summary['replies_without_loss']:,} of the replies are marked as not to be trained on{then}.",
            soft_wrap=True,
        )
    if summary["with_tool_calls"]:
        out.print(
            f"{summary['with_tool_calls']:,} rows have function calls, which stand in the text as JSON, "
            "and not in the form of a chat template.",
            soft_wrap=True,
        )
    out.print(f"Written to {' and '.join(summary['files'].values())}.", soft_wrap=True)
