"""Runs in notebooks and figures: tables, a bar of progress, and plots. All texts are escaped."""

from __future__ import annotations

import importlib
import sys
import time
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from agentgym_gym._html import escaped, table
from agentgym_gym.errors import BadOption, MissingExtra

if TYPE_CHECKING:
    from typing_extensions import Self

    from agentgym_gym.evaluate._figures.metrics import Summary
    from agentgym_gym.rollout._records import EpisodeRecord

__all__ = ["RunProgress", "in_notebook", "plot_runs", "runs_table"]

_COLUMNS = ("run", "tasks", "episodes", "faulted", "success", "95 %", "score", "turns")
_METRICS = ("success", "score")
_UPDATE_SECONDS, _LINE_SECONDS = 0.2, 10.0


def in_notebook() -> bool:
    """Return whether this program is the kernel of a notebook."""
    shell = _shell()
    return shell is not None and hasattr(shell, "kernel")


def _shell() -> Any:
    """Return IPython's shell; None if IPython was not started."""
    ipython = sys.modules.get("IPython")
    return None if ipython is None else ipython.get_ipython()


def runs_table(results: Iterable[tuple[str, Summary]]) -> str:
    """Return the metrics of runs, each with its label, as an HTML table."""
    rows = []
    for label, summary in results:
        interval = summary.success_interval
        success = "" if summary.success_rate is None else f"{summary.success_rate:.2f}"
        between = "" if interval is None else f"{interval[0]:.2f} to {interval[1]:.2f}"
        score = "" if summary.mean_score is None else f"{summary.mean_score:.2f}"
        turns = "" if summary.mean_turns is None else f"{summary.mean_turns:.2f}"
        counts = (summary.tasks, summary.episodes, summary.faulted)
        rows.append([label, *map(str, counts), success, between, score, turns])
    return table(_COLUMNS, rows)


def plot_runs(results: Iterable[tuple[str, Summary]], metric: str, axes: Any) -> Any:
    """Plot a metric of runs with its intervals; see `RunResults.plot`.

    Raises:
        BadOption: The metric is unknown, or no run has a value of it.
        MissingExtra: matplotlib is not installed.
    """
    if metric not in _METRICS:
        raise BadOption("metric", metric, f"one of {', '.join(_METRICS)}")
    points = [(label, *_point(summary, metric)) for label, summary in results]
    known = [(label, value, interval) for label, value, interval in points if value is not None]
    if not known:
        raise BadOption("metric", metric, problem="is unknown for all runs: no episode has it")
    if axes is None:
        try:
            pyplot = importlib.import_module("matplotlib.pyplot")
        except ModuleNotFoundError as error:
            raise MissingExtra("plot", extra="plots", module=error.name or "matplotlib") from error
        _, axes = pyplot.subplots(figsize=(6, 1 + 0.4 * len(known)), layout="constrained")
    places = range(len(known))
    values = [value for _, value, _ in known]
    below = [value - interval[0] if interval else 0.0 for _, value, interval in known]
    above = [interval[1] - value if interval else 0.0 for _, value, interval in known]
    axes.errorbar(values, places, xerr=[below, above], fmt="o", capsize=4)
    # A name with dollar signs is text, not a formula.
    axes.set_yticks(places, [label for label, _, _ in known], parse_math=False)
    axes.set_ylim(len(known) - 0.5, -0.5)
    axes.set_xlabel(f"{metric}, with 95 % intervals over tasks")
    if metric == "success":
        axes.set_xlim(-0.02, 1.02)
    return axes


def _point(summary: Summary, metric: str) -> tuple[float | None, tuple[float, float] | None]:
    if metric == "success":
        return summary.success_rate, summary.success_interval
    return summary.mean_score, summary.score_interval


class RunProgress:
    """Shows the progress of runs: a bar in a notebook, otherwise lines on standard error.

    Args:
        before: The episodes before a resume.
        left: Number of episodes to play.
    """

    def __init__(self, before: Sequence[EpisodeRecord], left: int) -> None:
        self._done = self._faulted = self._judged = self._solved = 0
        self._stopped = False
        self._handle: Any = None
        for record in before:
            self._count(record)
        self._total = self._done + left
        self._shown = time.monotonic()

    def __enter__(self) -> Self:
        if in_notebook():
            display = importlib.import_module("IPython.display").display
            self._handle = display(self, display_id=True)
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        self._stopped = kind is not None
        self._show(0)

    def note(self, record: EpisodeRecord) -> None:
        """Count an episode."""
        self._count(record)
        self._show(_LINE_SECONDS if self._handle is None else _UPDATE_SECONDS)

    def _count(self, record: EpisodeRecord) -> None:
        self._done += record.scored
        self._faulted += not record.scored
        self._judged += record.success is not None
        self._solved += bool(record.success)

    def _show(self, seconds: float) -> None:
        """Show the progress, unless it was shown in the last seconds."""
        if time.monotonic() - self._shown < seconds:
            return
        self._shown = time.monotonic()
        if self._handle is not None:
            self._handle.update(self)
        else:
            sys.stderr.write(f"{self}\n")

    def __repr__(self) -> str:
        parts = [f"{self._done} of {self._total} episodes"]
        if self._judged:
            parts.append(f"success {self._solved / self._judged:.2f}")
        if self._faulted:
            parts.append(f"{self._faulted} faulted")
        if self._stopped:
            parts.append("stopped: resume=True continues")
        return ", ".join(parts)

    def _repr_html_(self) -> str:
        return f'<progress max="{self._total}" value="{self._done}"></progress> {escaped(self)}'
