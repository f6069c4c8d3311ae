"""``agentgym rescore``."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from agentgym_gym import evaluate as evaluation
from agentgym_gym._cli.console import clean, out, print_table
from agentgym_gym._cli.options import (
    OnUnknown,  # noqa: TC001 - typer reads it at run time
    Parser,  # noqa: TC001 - likewise
)
from agentgym_gym._cli.resolve_env import Own, find_modules_here, know
from agentgym_gym._options import FormatName  # noqa: TC001 - typer reads it at run time
from agentgym_gym.errors import BadOption
from agentgym_gym.evaluate._rescore import load_rule
from agentgym_gym.evaluate._runs import EPISODES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agentgym_gym.evaluate import EpisodeRecord, Rescored, Run

__all__ = ["rescore"]

_EXAMPLES = 5

# Facts about the original run, which do not apply to the rescored one.
_OF_PLAYING = {"finished", "written", "wall_seconds", "versions", "git", "process"}


def rescore(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="Folder of a run, or of several.")],
    *,
    out_: Annotated[Path, typer.Option("--out", help="A new folder for the rescored run.")],
    parser: Parser = None,
    action_format: Annotated[
        FormatName | None,
        typer.Option(
            metavar="FORMAT",
            help="How a reply wraps its action, as of agentgym eval; by default as in the run.",
        ),
    ] = None,
    on_unknown: OnUnknown = None,
    score: Annotated[
        str | None,
        typer.Option(
            metavar="MODULE:NAME",
            help="A function of your own: takes an EpisodeRecord, returns the score, or the score and "
            "whether the task was solved.",
        ),
    ] = None,
    environments: Own = None,
) -> None:
    """Score the kept replies of a run again, without playing.

    They are read by another parser, or scored by another rule, or both. What is not given is as it was in the
    run. An episode in which another action is read than was played has no score any more, because what would
    have followed is not known.
    """
    know(environments)
    folders = evaluation.find_runs(run)
    _check_apart(run, out_)
    find_modules_here()
    rule = load_rule(score) if score is not None else None
    done: list[tuple[Run, Rescored, Path]] = []
    for folder in folders:
        kept = evaluation.read_run(folder)
        rescored = evaluation.rescore(
            kept, parser=parser, action_format=action_format, on_unknown=on_unknown, score=rule
        )
        done.append((kept, rescored, out_ / folder.relative_to(run if run.is_dir() else run.parent)))
    for kept, rescored, path in done:
        _write(kept, rescored, path, score)
        _print(kept, rescored)
    out.print(f"Written to {out_}.", soft_wrap=True)


def _check_apart(run: Path, out_: Path) -> None:
    kept, new = (run if run.is_dir() else run.parent).resolve(), out_.resolve()
    if kept == new or kept in new.parents:
        raise BadOption(f"--out {out_} lies in the run itself, which is not changed: choose another folder")


def _write(kept: Run, rescored: Rescored, path: Path, score: str | None) -> None:
    facts: dict[str, Any] = {key: value for key, value in kept.facts.items() if key not in _OF_PLAYING}
    facts |= {"env_id": kept.env_id, "agent": kept.agent, "options": dict(rescored.options)}
    facts["rescored"] = {
        "from": str(kept.path),
        "episodes_sha256": hashlib.sha256((kept.path / EPISODES).read_bytes()).hexdigest(),
        "options_played": kept.facts.get("options"),
        "score": score,
        **{f"{key}_played": kept.facts[key] for key in sorted(_OF_PLAYING) if key in kept.facts},
        **rescored.to_json(),
    }
    with evaluation.RunFolder(path, facts) as folder:
        for record in rescored.records:
            folder.add(record)


def _print(kept: Run, rescored: Rescored) -> None:
    rows = [
        _row("before", kept.records, sum(rescored.errors_before.values()), rescored),
        _row("after", rescored.records, sum(rescored.errors_after.values()), rescored),
    ]
    print_table(list(rows[0]), [list(row.values()) for row in rows], left=[""], title=kept.label)
    if not rescored.replies:
        out.print("The replies were not read again.")
        return
    for kind in sorted({*rescored.errors_before, *rescored.errors_after}):
        before, after = rescored.errors_before.get(kind, 0), rescored.errors_after.get(kind, 0)
        out.print(f"{kind}: {before} before, {after} after.")
    out.print(
        f"{rescored.replies} replies read again; {rescored.different} send other words than were played."
    )
    if rescored.not_as_played:
        out.print(
            f"{rescored.not_as_played} are not read as they were played even with the options of the run: "
            "this version reads them otherwise, or the agent did not play what it wrote.",
            soft_wrap=True,
        )
    if rescored.diverged:
        out.print(
            f"{rescored.diverged} episodes diverged from what was played: not scored, since what would have "
            "followed is not known.",
            soft_wrap=True,
        )
        if rescored.success_bounds is not None:
            out.print(
                "Whatever they would have come to, success is from {:.2f} to {:.2f}.".format(
                    *rescored.success_bounds
                )
            )
    for each in rescored.examples[:_EXAMPLES]:
        out.print(f"  task {each.task_id}, sample {each.sample}, {clean(str(each))}", soft_wrap=True)


def _row(name: str, records: Sequence[EpisodeRecord], errors: int, rescored: Rescored) -> dict[str, str]:
    summary = evaluation.summarise(records)
    interval = summary.success_interval
    return {
        "": name,
        "episodes": str(len(records)),
        "scored": str(sum(record.scored for record in records)),
        "diverged": str(sum(record.ending == evaluation.DIVERGED for record in records)),
        "success": _decimal(summary.success_rate),
        "95 %": "-" if interval is None else "{:.2f} to {:.2f}".format(*interval),
        "score": _decimal(summary.mean_score),
        "parse errors": str(errors) if rescored.replies else "-",
    }


def _decimal(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"
