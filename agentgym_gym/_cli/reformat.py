"""``agentgym data reformat``: convert trajectories to another action format."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from agentgym_gym import data as library
from agentgym_gym._cli.console import clean, out, print_json
from agentgym_gym._cli.declared import command
from agentgym_gym._cli.options import Force, Json  # noqa: TC001 - typer reads them
from agentgym_gym._cli.trajectories import SourceFormatOption, Sources, print_left_out
from agentgym_gym._env_options import FORMAT_NAMES, FormatName
from agentgym_gym.catalogue import find
from agentgym_gym.errors import BadFile, BadOption, UnknownEnvironment
from agentgym_gym.options import Option

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agentgym_gym.catalogue import Environment
    from agentgym_gym.data import Reformatted, SourceFormat, Trajectory, Unparsed

__all__ = ["ReformatOptions", "convert", "reformat"]

_EXAMPLES = 20


@dataclass(frozen=True, kw_only=True)
class ReformatOptions:
    """The options of ``agentgym data reformat``."""

    sources: Sources
    to: Annotated[FormatName, Option(f"target format: {FORMAT_NAMES}", metavar="FORMAT")]
    out_: Annotated[Path, Option("output file of AgentTraj entries")]
    from_: SourceFormatOption = None
    keep_unparsed: Annotated[
        bool,
        Option("keep trajectories with unparsed replies, leaving those replies unchanged"),
    ] = False
    force: Force = False
    as_json: Json = False


@command(ReformatOptions)
def reformat(options: ReformatOptions) -> None:
    """Convert trajectories to another action format.

    It parses the action and thought of each reply in the source format, writes them in the target format, and
    replaces the system prompt by that of the target format. By default, a trajectory with a reply that cannot
    be converted is left out. Such replies are counted by kind, and the first ones are listed.

    With --from agentgym, it parses ReAct replies as AgentGym's own client does. Several sources are combined.
    """
    trajectories = [each for path in options.sources for each in library.read_trajectories(path)]
    selected = library.select(trajectories, split="all")
    results = [
        _reformatted(each, options.from_, options.to, keep_unparsed=options.keep_unparsed)
        for each in selected.kept
    ]
    kept = [result.trajectory for result in results if result.trajectory is not None]
    unparsed = [reply for result in results for reply in result.unparsed]
    summary: dict[str, Any] = {
        "trajectories": len(kept),
        "left_out": dict(selected.left_out),
        "left_out_unparsed": len(results) - len(kept),
        "unparsed": dict(sorted(Counter(reply.kind for reply in unparsed).items())),
        "replies": [vars(reply) for reply in unparsed],
        "file": str(options.out_),
    }
    if kept:
        library.write_agenttraj(options.out_, kept, force=options.force)
    if options.as_json:
        print_json(summary)
    else:
        _print(summary, unparsed)
    if not kept:
        raise BadFile(
            f"no trajectory remains, so {options.out_} is not written; see --keep-unparsed", path=options.out_
        )


def convert(
    trajectories: Sequence[Trajectory], source: SourceFormat | None, target: FormatName
) -> list[Trajectory]:
    """Convert trajectories to an action format; print and leave out the unconverted ones.

    Args:
        trajectories: The trajectories. Those in the format already stay as they are.
        source: The format to read; None for the trajectory's own.
        target: The format to write.

    Raises:
        BadOption: No trajectory can be converted, the format to read is unknown, or an environment is not in
            the catalogue.
    """
    converted: list[Trajectory] = []
    unparsed: list[Unparsed] = []
    for each in trajectories:
        if each.action_format == target:
            converted.append(each)
            continue
        result = _reformatted(each, source, target, keep_unparsed=False)
        unparsed += result.unparsed
        converted += [] if result.trajectory is None else [result.trajectory]
    _print_unparsed(unparsed)
    if len(converted) < len(trajectories):
        out.print(f"Left out, unconverted reply: {len(trajectories) - len(converted):,}.")
    if not converted:
        raise BadOption(
            f"cannot convert any of {len(trajectories)} trajectories to {target}: give another --from"
        )
    return converted


def _reformatted(
    trajectory: Trajectory, source_format: SourceFormat | None, target: FormatName, *, keep_unparsed: bool
) -> Reformatted:
    """Convert a trajectory.

    Raises:
        BadOption: The format to read is unknown, or the environment is not in the catalogue.
    """
    source: Any = source_format or trajectory.action_format
    if source is None:
        raise BadOption(
            f"{trajectory.source} does not name the format of its replies: give --from, which is agentgym "
            "for the published AgentTraj files"
        )
    return library.reformat(trajectory, _environment(trajectory), source, target, keep_unparsed=keep_unparsed)


def _environment(trajectory: Trajectory) -> Environment:
    try:
        return find(trajectory.env_id)
    except UnknownEnvironment:
        raise BadOption(
            f"{trajectory.source}: cannot convert replies of {trajectory.env_id}, which is not in the "
            "catalogue: only AgentGym's environments have a parser"
        ) from None


def _print(summary: dict[str, Any], unparsed: Sequence[Unparsed]) -> None:
    print_left_out(summary["left_out"])
    _print_unparsed(unparsed, more=", which --json lists")
    if summary["left_out_unparsed"]:
        out.print(f"Left out, unconverted reply: {summary['left_out_unparsed']:,}.")
    if summary["trajectories"]:
        out.print(f"{summary['trajectories']:,} trajectories. Written to {summary['file']}.")


def _print_unparsed(unparsed: Sequence[Unparsed], *, more: str = "") -> None:
    """Print how many replies could not be converted, by kind, and the first of them."""
    if unparsed:
        counts = Counter(reply.kind for reply in unparsed)
        kinds = ", ".join(f"{count:,} {kind}" for kind, count in sorted(counts.items()))
        out.print(f"Replies that could not be converted: {kinds}.")
        for reply in unparsed[:_EXAMPLES]:
            out.print(f"  {clean(str(reply))}")
        if len(unparsed) > _EXAMPLES:
            out.print(f"  and {len(unparsed) - _EXAMPLES:,} more{more}")
