"""``agentgym rescore``: score the recorded replies of a run again."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from agentgym_gym import evaluate as evaluation
from agentgym_gym._cli.console import clean, out, print_table
from agentgym_gym._cli.declared import command
from agentgym_gym._cli.options import ExtraEnvs, register_envs
from agentgym_gym._env_options import FORMAT_NAMES, FormatName, OnUnknown, Parser
from agentgym_gym.errors import BadFile
from agentgym_gym.evaluate._rescore import load_rule
from agentgym_gym.evaluate._resolve import find_modules_here
from agentgym_gym.evaluate._runs import EPISODES
from agentgym_gym.options import Option

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agentgym_gym.evaluate import EpisodeRecord, Rescored, RunResult

__all__ = ["RescoreOptions", "rescore"]

_EXAMPLES = 5

# Metadata of the original run, which does not apply to the rescored one.
_NOT_COPIED = {"finished", "protocol", "written", "wall_seconds", "versions", "git", "process"}


@dataclass(frozen=True, kw_only=True)
class RescoreOptions:
    """The options of ``agentgym rescore``."""

    run: Annotated[
        Path, Option("folder of one or several runs", positional=True, metavar="RUN", completes="run")
    ]
    out_: Annotated[Path, Option("new folder for the rescored run")]
    parser: Parser = None
    action_format: Annotated[
        FormatName | None,
        Option(f"action format: {FORMAT_NAMES}", metavar="FORMAT", default="as in the run"),
    ] = None
    on_unknown: OnUnknown = None
    score: Annotated[
        str | None,
        Option("function from EpisodeRecord to score, or (score, solved)", metavar="MODULE:NAME"),
    ] = None
    environments: ExtraEnvs = None


@command(RescoreOptions)
def rescore(options: RescoreOptions) -> None:
    """Score the recorded replies of a run again, without playing.

    It parses the replies with other options, applies another scoring rule, or both; options that are not
    given are those of the run. An episode in which a reply now parses to another action than the played one
    loses its score, because the rest of the episode would have differed.
    """
    register_envs(options.environments)
    run, out_ = options.run, options.out_
    folders = evaluation.find_runs(run)
    _check_outside(run, out_)
    find_modules_here()
    rule = load_rule(options.score) if options.score is not None else None
    done: list[tuple[RunResult, Rescored, Path]] = []
    for folder in folders:
        original = evaluation.read_run(folder)
        rescored = evaluation.rescore(
            original,
            parser=options.parser,
            action_format=options.action_format,
            on_unknown=options.on_unknown,
            score=rule,
        )
        done.append((original, rescored, out_ / folder.relative_to(run if run.is_dir() else run.parent)))
    for original, rescored, path in done:
        _write(original, rescored, path, options.score)
        _print(original, rescored)
    out.print(f"Written to {out_}.")


def _check_outside(run: Path, out_: Path) -> None:
    original, new = (run if run.is_dir() else run.parent).resolve(), out_.resolve()
    if original == new or original in new.parents:
        raise BadFile(
            f"--out {out_} is inside the run, which is never changed: choose another folder", path=out_
        )


def _write(original: RunResult, rescored: Rescored, path: Path, score: str | None) -> None:
    facts: dict[str, Any] = {key: value for key, value in original.facts.items() if key not in _NOT_COPIED}
    facts |= {"env_id": original.env_id, "agent": original.agent, "options": dict(rescored.options)}
    facts["rescored"] = {
        "from": str(original.path),
        "episodes_sha256": hashlib.sha256((original.path / EPISODES).read_bytes()).hexdigest(),
        "options_played": original.facts.get("options"),
        "score": score,
        **{f"{key}_played": original.facts[key] for key in sorted(_NOT_COPIED) if key in original.facts},
        **rescored.to_json(),
    }
    with evaluation.RunFolder(path, facts) as folder:
        for record in rescored.records:
            folder.add(record)


def _print(original: RunResult, rescored: Rescored) -> None:
    rows = [
        _row("before", original.records, sum(rescored.errors_before.values()), rescored),
        _row("after", rescored.records, sum(rescored.errors_after.values()), rescored),
    ]
    cells = [list(row.values()) for row in rows]
    print_table(list(rows[0]), cells, left=[""], below=["95 %"], title=original.label)
    if not rescored.replies:
        out.print("The replies were not parsed again.")
        return
    for kind in sorted({*rescored.errors_before, *rescored.errors_after}):
        before, after = rescored.errors_before.get(kind, 0), rescored.errors_after.get(kind, 0)
        out.print(f"{kind}: {before} before, {after} after.")
    out.print(
        f"{rescored.replies} replies parsed again; {rescored.different} give another text than was sent."
    )
    if rescored.not_as_played:
        out.print(
            f"{rescored.not_as_played} do not parse to the played action even with the options of the run: "
            "this version parses them differently, or the agent played another action than it wrote.",
        )
    if rescored.diverged:
        out.print(
            f"{rescored.diverged} episodes diverged from the played actions, so they have no score.",
        )
        if rescored.success_bounds is not None:
            out.print(
                "With any outcome of these episodes, success is from {:.2f} to {:.2f}.".format(
                    *rescored.success_bounds
                )
            )
    for each in rescored.examples[:_EXAMPLES]:
        out.print(f"  task {each.task_id}, sample {each.sample}, {clean(str(each))}")


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
