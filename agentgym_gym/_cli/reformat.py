"""``agentgym data reformat``."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from agentgym_gym import data as library
from agentgym_gym._cli.console import clean, out, print_json
from agentgym_gym._cli.options import Force, Json  # noqa: TC001 - typer reads them at run time
from agentgym_gym._cli.trajectories import (
    Sources,
    print_left_out,
)
from agentgym_gym._options import FormatName  # noqa: TC001 - typer reads it at run time
from agentgym_gym.catalogue import find
from agentgym_gym.data import SourceFormat  # noqa: TC001 - likewise
from agentgym_gym.errors import BadOption, UnknownEnvironment

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agentgym_gym.catalogue import Environment
    from agentgym_gym.data import Reformatted, Trajectory, Unparsed

__all__ = ["print_unparsed", "reformat", "reformatted"]

_EXAMPLES = 20


def reformat(
    sources: Sources,
    *,
    to: Annotated[
        FormatName, typer.Option(metavar="FORMAT", help="The format to write, as of agentgym eval.")
    ],
    out_: Annotated[Path, typer.Option("--out", help="The file of AgentTraj to write.")],
    from_: Annotated[
        SourceFormat | None,
        typer.Option(
            "--from",
            metavar="FORMAT",
            help="The format to read, or agentgym, to read ReAct as AgentGym's own client does; by default "
            "what the source says.",
        ),
    ] = None,
    keep_unparsed: Annotated[
        bool,
        typer.Option(
            "--keep-unparsed",
            help="Keep a trajectory with a reply that cannot be read, and that reply as it is.",
        ),
    ] = False,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Put what was played into another action format.

    The action and the thought of each reply are read by the one format and written in the other, and the
    system prompt becomes that of the other. A trajectory with a reply that cannot be read is left out; each
    such reply is counted by its kind, and the first are shown with their place.
    """
    chosen = library.select([each for path in sources for each in library.read_trajectories(path)])
    done = [reformatted(each, from_, to, keep_unparsed=keep_unparsed) for each in chosen.kept]
    kept = [each.trajectory for each in done if each.trajectory is not None]
    unparsed = [each for one in done for each in one.unparsed]
    summary: dict[str, Any] = {
        "trajectories": len(kept),
        "left_out": dict(chosen.left_out),
        "left_out_unparsed": len(done) - len(kept),
        "unparsed": dict(sorted(Counter(each.kind for each in unparsed).items())),
        "replies": [vars(each) for each in unparsed],
        "file": str(out_),
    }
    if kept:
        library.write_agenttraj(out_, kept, force=force)
    if as_json:
        print_json(summary)
    else:
        _print(summary, unparsed)
    if not kept:
        raise BadOption(f"no trajectory is left, so that {out_} is not written")


def reformatted(
    trajectory: Trajectory, given: SourceFormat | None, target: FormatName, *, keep_unparsed: bool
) -> Reformatted:
    """Convert a trajectory to another action format.

    Args:
        trajectory: The trajectory.
        given: The format to read; None for the trajectory's ``action_format``.
        target: The format to write.
        keep_unparsed: Whether to keep replies that cannot be read, unchanged.

    Raises:
        BadOption: The format to read is unknown, or the environment is not in the catalogue.
    """
    source: Any = given or trajectory.action_format
    if source is None:
        raise BadOption(
            f"{trajectory.source} does not say in which format its replies are: say --from; for the "
            "published AgentTraj it is agentgym"
        )
    return library.reformat(trajectory, _environment(trajectory), source, target, keep_unparsed=keep_unparsed)


def _environment(trajectory: Trajectory) -> Environment:
    try:
        return find(trajectory.env_id)
    except UnknownEnvironment:
        raise BadOption(
            f"{trajectory.source}: {trajectory.env_id} is not in the catalogue, so that its replies cannot "
            "be read: another library's environment has no parser"
        ) from None


def _print(summary: dict[str, Any], unparsed: Sequence[Unparsed]) -> None:
    print_left_out(summary["left_out"])
    print_unparsed(unparsed, more=", which --json lists")
    if summary["left_out_unparsed"]:
        out.print(f"Left out for such a reply: {summary['left_out_unparsed']:,}.", soft_wrap=True)
    if summary["trajectories"]:
        out.print(f"{summary['trajectories']:,} trajectories. Written to {summary['file']}.", soft_wrap=True)


def print_unparsed(unparsed: Sequence[Unparsed], *, more: str = "") -> None:
    """Print the number of replies that could not be converted, and the first ones.

    Args:
        unparsed: The replies.
        more: Text to append to the number of replies that are not shown.
    """
    if unparsed:
        found = Counter(each.kind for each in unparsed)
        kinds = ", ".join(f"{count:,} {kind}" for kind, count in sorted(found.items()))
        out.print(f"Replies that could not be put into the other format: {kinds}.", soft_wrap=True)
        for each in unparsed[:_EXAMPLES]:
            out.print(f"  {clean(str(each))}", soft_wrap=True)
        if len(unparsed) > _EXAMPLES:
            out.print(f"  and {len(unparsed) - _EXAMPLES:,} more{more}")
