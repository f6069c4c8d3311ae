"""``agentgym data sft`` and ``agentgym data agenttraj``: write trajectories as training data."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

from agentgym_gym import data as library
from agentgym_gym._cli.console import clean, out, print_json, print_table
from agentgym_gym._cli.declared import command
from agentgym_gym._cli.options import Force, Json, ValidationSize  # noqa: TC001 - typer reads them
from agentgym_gym._cli.per_environment import PerEnvironment, file_text, read_per_environment
from agentgym_gym.catalogue import find
from agentgym_gym.data import Item, Seeds, SourceFormat, Trajectory
from agentgym_gym.data._split import parse_val
from agentgym_gym.data._trajectories import as_system, as_turns, with_prompt
from agentgym_gym.data._turns import parse_policy, per_turn
from agentgym_gym.errors import BadOption, UnknownEnvironment
from agentgym_gym.options import Option

if TYPE_CHECKING:
    from agentgym_gym.data import Selected

__all__ = [
    "AgentTrajOptions",
    "EpisodeOptions",
    "FineTuningOptions",
    "SftRowsOptions",
    "SourceFormatOption",
    "Sources",
    "agenttraj",
    "print_left_out",
    "print_summary",
    "sft",
]

Sources: TypeAlias = Annotated[
    list[Path],
    Option(
        "folders of runs, AgentTraj files, or parquet of data sft",
        positional=True,
        metavar="SOURCE",
        completes="run",
    ),
]
SourceFormatOption: TypeAlias = Annotated[
    SourceFormat | None,
    Option(
        "source format, or agentgym for AgentGym's own client",
        flag="--from",
        metavar="FORMAT",
        default="from the source",
    ),
]


@dataclass(frozen=True, kw_only=True)
class EpisodeOptions:
    """The options that select the episodes to train on."""

    sources: Sources
    out_: Annotated[Path, Option("output folder")]
    successful: Annotated[bool, Option("keep only episodes known to have solved their task")] = False
    min_score: Annotated[float | None, Option("minimum score of kept episodes")] = None
    best: Annotated[
        int | None,
        Option("keep the N best episodes per task", least=1, metavar="N"),
    ] = None
    split: Annotated[
        str | None,
        Option(
            "split of kept episodes; all for every episode", default="none for evaluation", completes="split"
        ),
    ] = None

    def select(self, sources: Sequence[Path]) -> Selected:
        """Read trajectories and select those to train on.

        Args:
            sources: The sources to read: all or some of the options' sources.

        Raises:
            BadOption: A source cannot be read, or no trajectories remain.
        """
        trajectories = [each for path in sources for each in library.read_trajectories(path)]
        selected = library.select(
            trajectories,
            successful=self.successful,
            min_score=self.min_score,
            best=self.best,
            split=self.split,
        )
        if not selected.kept:
            reasons = ", ".join(f"{count} {reason}" for reason, count in selected.left_out.items())
            raise BadOption(
                f"all {len(trajectories)} trajectories are left out: {reasons}; give others, or "
                "change the options that select them (--split all keeps every split)"
            )
        return selected


@dataclass(frozen=True, kw_only=True)
class FineTuningOptions(EpisodeOptions):
    """The options of commands that write episodes as rows for fine-tuning."""

    val: str | None = None  # each command has its own option and default
    seed: Annotated[int, Option("random seed of the split and order", least=0)] = 0
    prompt: Annotated[
        Literal["system", "turns"],
        Option("prompt as a system message, or as two turns"),
    ] = "system"
    system_prompt: Annotated[
        list[str] | None,
        PerEnvironment(file_text),
        Option("file with a system prompt to replace the recorded one", metavar="[NAME=]FILE"),
    ] = None
    history: Annotated[str, Option("messages before each reply: all, turns:K, or tokens:N")] = "all"
    force: Force = False

    def with_prompts(self, trajectories: Sequence[Trajectory]) -> list[Trajectory]:
        """Replace the system prompts of trajectories by the texts of ``--system-prompt``.

        Raises:
            BadOption: A value does not name one of several environments, or its file cannot be read.
        """
        names = [_item(each).environment.name for each in trajectories]
        given = read_per_environment(self, list(dict.fromkeys(names)))
        return [
            with_prompt(each, given[name]["system_prompt"]) if "system_prompt" in given[name] else each
            for name, each in zip(names, trajectories, strict=True)
        ]

    def divide(self, trajectories: Iterable[Trajectory], val: str) -> dict[str, list[Trajectory]]:
        """Divide trajectories into ``"train"`` and ``"val"`` by task, so that no task is in both.

        Unless ``--history`` is all, each turn becomes a trajectory.

        Args:
            trajectories: The trajectories.
            val: The number or share of validation tasks, in the syntax of ``--val``.

        Raises:
            BadOption: There are too few tasks, or a trajectory lacks what the history requires.
        """
        size, policy = parse_val(val), parse_policy(self.history)
        change: Callable[[Trajectory], Trajectory] = as_system if self.prompt == "system" else as_turns
        by_task: dict[Any, list[Trajectory]] = {}
        items = {}
        for trajectory in trajectories:
            item = _item(trajectory)
            items[item.key] = item
            turns = per_turn(as_system(trajectory), policy)
            by_task.setdefault(item.key, []).extend(map(change, turns))
        division = library.divide(items.values(), val=size, seed=self.seed)
        return {
            part: [each for item in chosen for each in by_task[item.key]]
            for part, chosen in (("train", division.train), ("val", division.val))
        }

    def write(
        self, parts: Mapping[str, Sequence[Trajectory]], folder: Path, left_out: Mapping[str, int]
    ) -> dict[str, Any]:
        """Write trajectories as rows for fine-tuning.

        Args:
            parts: The trajectories by ``"train"`` and ``"val"``; no file is written for an empty part.
            folder: The target folder.
            left_out: The number of dropped trajectories by reason.

        Returns:
            A summary for :func:`print_summary`.

        Raises:
            BadOption: A file exists and may not be replaced, or the folder cannot be written to.
        """
        written = library.write(
            folder,
            {part: library.sft_rows(each) for part, each in parts.items() if each},
            library.sft_schema(),
            force=self.force,
        )
        return {
            "rows": {part: len(each) for part, each in parts.items()},
            "environments": _environments(parts),
            "left_out": dict(left_out),
            **_replies([each for part in parts.values() for each in part]),
            "files": {part: str(path) for part, path in written.items()},
            "seed": self.seed,
            "history": str(parse_policy(self.history)),
        }


@dataclass(frozen=True, kw_only=True)
class SftRowsOptions(FineTuningOptions):
    """The options of ``agentgym data sft``."""

    out_: Annotated[Path, Option("folder for train.parquet and val.parquet")]
    val: ValidationSize = "0.1"
    as_json: Json = False


@command(
    SftRowsOptions,
    groups={
        "Trajectories": ("successful", "min_score", "best", "split", "val", "seed"),
        "Conversations": ("prompt", "system_prompt", "history"),
        "Output": ("out_", "force", "as_json"),
    },
    examples=(
        "agentgym data sft runs/oracle --successful --out data/sft",
        "agentgym data sft runs/oracle --history turns:2 --out data/turns",
    ),
)
def sft(options: SftRowsOptions) -> None:
    """Write episodes as rows for fine-tuning with verl.

    It leaves out episodes that a fault ended, duplicates, and episodes that the options exclude, and prints
    their numbers by reason. Episodes of a split for evaluation, such as test, are left out unless --split
    names it, or all. All episodes of a task are in the same file. Several sources are combined.

    With --prompt turns, the prompt is a user message that is answered by OK, as in AgentGym's training. With
    several environments, put NAME= before the value of --system-prompt, and repeat it for each of them.

    With --history, unless it is all, each turn becomes a row: the messages that an evaluation with the same
    --history sends, and the reply.
    """
    selected = options.select(options.sources)
    parts = options.divide(options.with_prompts(selected.kept), options.val)
    summary = options.write(parts, options.out_, selected.left_out)
    if options.as_json:
        print_json(summary)
    else:
        print_summary(summary)


@dataclass(frozen=True, kw_only=True)
class AgentTrajOptions(EpisodeOptions):
    """The options of ``agentgym data agenttraj``."""

    out_: Annotated[Path, Option("output file")]
    force: Force = False


@command(AgentTrajOptions)
def agenttraj(options: AgentTrajOptions) -> None:
    """Write episodes as an AgentTraj file.

    AgentGym's own trainer reads the file. The system prompt becomes the first user message, which is answered
    by OK. The file contains the scores as reward and success. Several sources are combined. The same episodes
    are left out as by agentgym data sft.
    """
    selected = options.select(options.sources)
    count = library.write_agenttraj(options.out_, selected.kept, force=options.force)
    print_left_out(selected.left_out)
    out.print(f"{count:,} trajectories. Written to {options.out_}.")


def print_left_out(left_out: Mapping[str, int]) -> None:
    """Print the number of dropped trajectories by reason."""
    for reason, count in left_out.items():
        out.print(f"Left out, {clean(reason)}: {count:,}.")


def _item(trajectory: Trajectory) -> Item:
    try:
        return Item(find(trajectory.env_id), trajectory.task_id)
    except UnknownEnvironment:
        return Item(Seeds(trajectory.env_id), trajectory.task_id)


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
    conversations = [trajectory.messages for trajectory in trajectories]
    replies = [message for messages in conversations for message in messages if message.role == "assistant"]
    return {
        "replies": len(replies),
        "replies_without_loss": sum(reply.loss is False for reply in replies),
        "with_tool_calls": sum(
            any("tool_calls" in message.extra for message in messages) for messages in conversations
        ),
        "longest_characters": max(
            sum(len(message.content) for message in messages) for messages in conversations
        ),
    }


def print_summary(summary: Mapping[str, Any], *, reads_marks: bool = False) -> None:
    """Print the summary of the written files.

    Args:
        summary: The result of `FineTuningOptions.write`.
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
    )
    print_left_out(summary["left_out"])
    if summary["replies_without_loss"]:
        effect = "" if reads_marks else "; verl ignores the mark and trains on them"
        out.print(
            f"{summary['replies_without_loss']:,} replies are marked as excluded from training{effect}.",
        )
    if summary["with_tool_calls"]:
        out.print(
            f"{summary['with_tool_calls']:,} rows have function calls. They are in the text as JSON, not in "
            "the form of a chat template.",
        )
    out.print(f"Written to {' and '.join(summary['files'].values())}.")
