"""``agentgym compare``: compare runs task by task."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

from agentgym_gym import evaluate as evaluation
from agentgym_gym._cli.console import clean, out, print_json, print_pairs, print_table
from agentgym_gym._cli.declared import command
from agentgym_gym.errors import BadFile, BadOption
from agentgym_gym.evaluate._figures.p_values import DRAWS, ENUMERATED, holm
from agentgym_gym.options import Option

if TYPE_CHECKING:
    from agentgym_gym.evaluate import Comparison, RunResult
    from agentgym_gym.evaluate._compare import Paired

__all__ = ["CompareOptions", "compare"]

_TEST = "paired permutation test over tasks, two-sided"
_SHOWN = 10  # task ids per line
_LETTERS = 26


@dataclass(frozen=True, kw_only=True)
class CompareOptions:
    """The options of ``agentgym compare``."""

    paths: Annotated[
        list[Path],
        Option(
            "folders of one or several runs; the first is A", positional=True, metavar="RUN", completes="run"
        ),
    ]
    as_json: Annotated[bool, Option("print a JSON object", flag="--json")] = False


@command(CompareOptions)
def compare(options: CompareOptions) -> None:
    """Compare runs task by task.

    Each run is compared with the first run in the same environment and on the same world. A difference has a
    95 % interval, from a bootstrap over tasks; p is from the paired permutation test, and with several
    comparisons also corrected for their number by Holm's method. For two runs, it lists the tasks that are
    fixed, broken and unchanged.
    """
    groups = [
        [evaluation.read_run(folder) for folder in evaluation.find_runs(path)] for path in options.paths
    ]
    _check(groups)
    named = _named(groups)
    by_world: dict[_World, dict[str, RunResult]] = {}
    for name, runs in named.items():
        for run in runs:
            by_world.setdefault(_world(run), {})[name] = run
    comparisons = [result for runs in by_world.values() for result in _compare_with_first(runs)]
    single = [run for runs in by_world.values() if len(runs) == 1 for run in runs.values()]
    if options.as_json:
        print_json(
            {
                "test": _TEST,
                "comparisons": _to_json(comparisons),
                "not_compared": [
                    {"path": str(run.path), "env_id": run.env_id, "world": run.world} for run in single
                ],
            }
        )
        return
    print_pairs({name: _listed(runs) for name, runs in named.items()})
    _print(comparisons)
    for run in single:
        out.print(f"{run.path} is not compared: it is the only run in {clean(run.env_label)}.")


def _to_json(comparisons: Sequence[Comparison]) -> list[dict[str, Any]]:
    """Return the comparisons as JSON, with p-values corrected for their number."""
    values = [each.to_json() for each in comparisons]
    for measure in ("success", "score"):
        corrected = holm([value[measure]["p_value"] for value in values])
        for value, p in zip(values, corrected, strict=True):
            value[measure]["p_value_holm"] = p
    return values


def _check(groups: Sequence[Sequence[RunResult]]) -> None:
    """Check that each argument can be compared with another one.

    Raises:
        BadOption: A run is given twice, or no other run is in an environment of an argument.
    """
    all_runs = [run for runs in groups for run in runs]
    for path, times in Counter(run.path.resolve() for run in all_runs).items():
        if times > 1:
            raise BadFile(f"the run {path} is given {times} times: give it once", path=path)
    counts = Counter(map(_world, all_runs))
    for runs in groups:
        if all(counts[_world(run)] == 1 for run in runs):
            others = sorted({run.env_label for run in all_runs} - {run.env_label for run in runs})
            raise BadOption(
                f"{runs[0].path} is of {runs[0].env_label}, and there is no other run of it"
                + (f", but of {', '.join(others):.200}" if others else "")
                + ": compare runs in one environment, on one world"
            )


_World: TypeAlias = "tuple[str, str | None]"


def _world(run: RunResult) -> _World:
    """Return the key of comparable runs: scores on different worlds cannot be compared."""
    return run.env_id, run.world


def _named(arguments: Sequence[Sequence[RunResult]]) -> dict[str, list[RunResult]]:
    """Group runs by argument and agent, with one run per environment, and assign a letter to each group."""
    groups: dict[tuple[int, str, int], list[RunResult]] = {}
    for i, runs in enumerate(arguments):
        seen: Counter[tuple[str, str]] = Counter()
        for run in runs:
            groups.setdefault((i, run.agent, seen[run.agent, run.env_id]), []).append(run)
            seen[run.agent, run.env_id] += 1
    return {
        chr(ord("A") + i) if i < _LETTERS else f"R{i + 1}": runs for i, runs in enumerate(groups.values())
    }


def _compare_with_first(runs: Mapping[str, RunResult]) -> list[Comparison]:
    first, *others = runs
    return [evaluation.compare_runs(runs[first], runs[other], names=(first, other)) for other in others]


def _listed(runs: Iterable[RunResult]) -> str:
    return ", ".join(f"{run.path} ({clean(run.label)})" for run in runs)


def _print(comparisons: Sequence[Comparison]) -> None:
    for title, measures in (
        ("Success:", [each.success for each in comparisons]),
        ("Score:", [each.score for each in comparisons]),
    ):
        corrected = holm([paired.p_value for paired in measures])
        rows = [_row(*each) for each in zip(comparisons, measures, corrected, strict=True)]
        hidden = {name for name, shown in _IF_SEVERAL.items() if not shown(comparisons)}
        headings = [name for name in rows[0] if name not in hidden]
        out.print()
        print_table(
            headings,
            [[row[name] for name in headings] for row in rows],
            left=("environment", "runs"),
            below=("95 %", "p (Holm)"),
            title=title,
        )
    out.print("won, lost: number of tasks on which the first-named run is better, or worse.")
    out.print(_test(comparisons))
    if len(comparisons) == 1:
        for line in _changes(comparisons[0]):
            out.print(line)
    for each in comparisons:
        where = f"{_environment(each)}, {_runs(each)}: " if len(comparisons) > 1 else ""
        for line in _notes(each):
            out.print(f"{where}{clean(line)}.")


_IF_SEVERAL: Mapping[str, Callable[[Sequence[Comparison]], bool]] = {
    "environment": lambda comparisons: len({each.a.env_label for each in comparisons}) > 1,
    "p (Holm)": lambda comparisons: len(comparisons) > 1,
}
"""The columns that not every table has, with their condition."""


def _row(comparison: Comparison, paired: Paired, corrected: float | None) -> dict[str, str]:
    interval = paired.interval
    return {
        "environment": _environment(comparison),
        "runs": _runs(comparison),
        "tasks": str(paired.tasks),
        "means": f"{_decimal(paired.b)} - {_decimal(paired.a)}" if paired.tasks else "-",
        "difference": _decimal(paired.difference, "+"),
        "95 %": "-" if interval is None else "{:+.2f} to {:+.2f}".format(*interval),
        "p": _p(paired.p_value),
        "p (Holm)": _p(corrected),
        "won": str(paired.wins),
        "lost": str(paired.losses),
        "equal": str(paired.ties),
    }


def _environment(comparison: Comparison) -> str:
    return clean(comparison.a.env_label)


def _runs(comparison: Comparison) -> str:
    first, other = comparison.names
    return f"{other} - {first}"


def _test(comparisons: Sequence[Comparison]) -> str:
    """Describe the test and how its p-values were computed."""
    tests = [paired for each in comparisons for paired in (each.success, each.score) if paired.tasks]
    if not tests:
        return "No test: both runs scored none of the same tasks."
    drawn = sum(paired.draws is not None for paired in tests)
    how = "exact" if not drawn else f"by {DRAWS:,} draws"
    if 0 < drawn < len(tests):
        how = f"exact, or by {DRAWS:,} draws where more than {ENUMERATED} tasks differ by unequal amounts"
    text = f"p: {_TEST}, {how}."
    if len(comparisons) == 1:
        return text
    return f"{text} p (Holm): corrected for the number of comparisons in the table."


def _changes(comparison: Comparison) -> Iterable[str]:
    """Yield a line for the fixed, the broken and the unchanged tasks."""
    first, other = comparison.names
    for name, ids in (
        (f"Fixed (solved in {other} and not in {first})", comparison.fixed),
        (f"Broken (solved in {first} and not in {other})", comparison.broken),
        ("Unchanged", comparison.unchanged),
    ):
        yield f"{name}: {_tasks(ids) if ids else 'no task'}."


def _notes(comparison: Comparison) -> Iterable[str]:
    for warning in comparison.warnings:
        yield f"warning: {warning}"
    for reason, ids in comparison.left_out.items():
        yield f"{_tasks(ids)} left out: {reason}"
    if unknown := comparison.success_unknown:
        yield f"{_tasks(unknown)} left out of success: success is unknown"


def _tasks(ids: Sequence[int]) -> str:
    named = ", ".join(map(str, ids[:_SHOWN])) + (", ..." if len(ids) > _SHOWN else "")
    return f"{len(ids)} task{'s' if len(ids) > 1 else ''} ({named})"


def _decimal(value: float | None, sign: str = "") -> str:
    return "-" if value is None else f"{value:{sign}.2f}"


def _p(value: float | None) -> str:
    if value is None:
        return "-"
    return "< 0.001" if value < 0.001 else f"{value:.3f}"  # noqa: PLR2004
