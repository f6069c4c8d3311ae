"""The figures of several runs on a page: success by environment and model, and comparisons of two runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Any

from agentgym_gym.evaluate._compare import compare_runs
from agentgym_gym.evaluate._figures.p_values import holm
from agentgym_gym.evaluate._table import table_of

if TYPE_CHECKING:
    from agentgym_gym.evaluate._figures.metrics import Summary
    from agentgym_gym.evaluate._runs import RunResult

__all__ = ["compare_all", "letter_of", "matrix"]

MOST_PAIRED = 30
"""Maximum number of runs in one environment for comparing all pairs; with more, only pairs with the first."""


def letter_of(number: int) -> str:
    """Return the letter of a run: A, B, ... Z, AA, AB, ..."""
    rest, last = divmod(number, 26)
    return (letter_of(rest - 1) if rest else "") + chr(ord("A") + last)


def matrix(runs: Iterable[tuple[int, RunResult, Summary]]) -> dict[str, Any]:
    """Return the table of success by environment and model, see `agentgym_gym.evaluate._figures.table`.

    Args:
        runs: The number of each run on the page, the run, and its metrics.

    Returns:
        ``models``; ``rows``, each with ``environment``, ``split``, ``protocol`` and, by model, the numbers of
        the ``runs``; and ``notes``.
    """
    numbers, several, summaries = [], [], []
    for number, run, summary in runs:
        numbers.append(number)
        several.append(run)
        summaries.append(summary)
    table = table_of(several, summaries)
    number_of = {run.path: number for number, run in zip(numbers, several, strict=True)}
    return {
        "models": table.models,
        "rows": [
            {
                "environment": row.environment,
                "split": row.split,
                "protocol": row.protocol,
                "runs": {model: number_of[run.path] for model, run in row.runs.items()},
            }
            for row in table.by_environment
        ],
        "notes": table.notes,
    }


def compare_all(runs: Mapping[str, RunResult]) -> list[dict[str, Any]]:
    """Return the comparisons of the runs in the same environment and on the same world, as JSON values.

    P-values are also corrected, by Holm's method, for the number of comparisons in the environment.

    Args:
        runs: The runs by their letters on the page.
    """
    groups: dict[tuple[str, str | None], list[str]] = {}
    for letter, run in runs.items():
        groups.setdefault((run.env_id, run.world), []).append(letter)
    return [comparison for letters in groups.values() for comparison in _compared(letters, runs)]


def _compared(letters: Sequence[str], runs: Mapping[str, RunResult]) -> list[dict[str, Any]]:
    pairs = list(combinations(letters, 2))
    if len(letters) > MOST_PAIRED:
        pairs = [(letters[0], other) for other in letters[1:]]
    found = [compare_runs(runs[a], runs[b], names=(a, b)).to_json() for a, b in pairs]
    for measure in ("success", "score"):
        corrected = holm([each[measure]["p_value"] for each in found])
        for each, p_value in zip(found, corrected, strict=True):
            each[measure]["p_value_holm"] = p_value
    for each, pair in zip(found, pairs, strict=True):
        each.update(a=pair[0], b=pair[1], pairs=len(pairs))
        del each["unchanged"]  # all tasks of the comparison that are neither fixed nor broken
    return found
