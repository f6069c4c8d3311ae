"""The progress bar of a run."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bar

from agentgym_gym._cli.console import clean, err

if TYPE_CHECKING:
    from typing_extensions import Self

    from agentgym_gym.rollout._records import EpisodeRecord

__all__ = ["MAX_KINDS", "Progress"]

MAX_KINDS = 20
"""The maximum number of fault kinds to report."""

_MAX_LINE = 300  # maximum characters of a fault line


class Progress:
    """Shows the progress of a run on standard error if it is a terminal.

    Next to the bar, it shows the success rate so far, the number of faults, the models' tokens per second,
    and the remaining time. It prints the first fault of each kind as it happens, on a terminal or not.

    Args:
        before: The records of earlier episodes, when a run is resumed.
        left: The number of remaining episodes; None if unknown.
        success: Whether to show the success rate.
    """

    def __init__(self, before: Sequence[EpisodeRecord], left: int | None, *, success: bool = True) -> None:
        self._bar = Bar(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[metrics]}"),
            TimeRemainingColumn(),
            console=err,
            disable=not err.is_terminal,
        )
        played = sum(1 for record in before if record.scored)
        total = None if left is None else left + played
        self._task = self._bar.add_task("episodes", total=total, completed=played, metrics="")
        self._success = success
        self._solved = self._judged = self._faults = self._tokens = 0
        self._began = time.monotonic()
        self._kinds: set[tuple[bool, str]] = set()
        for record in before:
            self._count(record)
        self._tokens = 0  # count only tokens of this session

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def note(self, record: EpisodeRecord) -> None:
        """Count an episode."""
        self._count(record)
        self._print_fault(record)
        self._bar.update(self._task, advance=1, metrics=self._metrics())

    def _count(self, record: EpisodeRecord) -> None:
        self._faults += not record.scored
        if record.success is not None:
            self._judged += 1
            self._solved += record.success
        self._tokens += sum(step.get("completion_tokens", 0) for step in record.steps)

    def _print_fault(self, record: EpisodeRecord) -> None:
        fault = record.fault or record.agent_fault
        if fault is None:
            return
        kind = record.fault is None, fault["kind"]
        if kind in self._kinds or len(self._kinds) >= MAX_KINDS:
            return
        self._kinds.add(kind)
        where = f"agent {record.agent}" if record.fault is None else record.env_id
        line = f"fault: {fault['kind']} in {where}, task {record.task_id}: {fault['message']}"
        err.print(f"{' '.join(clean(line).split()):.{_MAX_LINE}}", soft_wrap=True)

    def _metrics(self) -> str:
        metrics: list[str] = []
        if self._judged and self._success:
            metrics.append(f"success {self._solved / self._judged:.2f}")
        if self._faults:
            metrics.append(f"faults {self._faults}")
        if self._tokens:
            metrics.append(f"{self._tokens / max(1e-9, time.monotonic() - self._began):,.0f} tokens/s")
        return "  ".join(metrics)
