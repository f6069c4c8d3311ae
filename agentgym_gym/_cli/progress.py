"""The progress of a run: a bar on a terminal, otherwise a line every 30 seconds and at the first trouble."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bar

from agentgym_gym._cli.console import clean, err

if TYPE_CHECKING:
    from typing_extensions import Self

    from agentgym_gym.rollout._records import EpisodeRecord

__all__ = ["MAX_KINDS", "Progress", "duration"]

MAX_KINDS = 20
"""The maximum number of fault kinds to report."""

BAR_SECONDS = 1.0
LINE_SECONDS = 30.0

TROUBLE = ("longest", "retrying", "HTTP 429", " waits ")
"""Words in the metrics of `state` that show that a server does not reply as it should."""

_MAX_LINE = 300  # maximum characters of a fault line


class Progress:
    """Shows the progress of a run on standard error: a bar if it is a terminal, otherwise lines.

    It shows the success rate so far, the number of faults, the state of the models' requests, tokens per
    second, and the remaining time. It prints the first fault of each kind as it happens.

    Args:
        before: The records of earlier episodes, when a run is resumed.
        left: The number of remaining episodes; None if unknown.
        success: Whether to show the success rate.
        state: Returns more metrics, as words.
    """

    def __init__(
        self,
        before: Sequence[EpisodeRecord],
        left: int | None,
        *,
        success: bool = True,
        state: Callable[[], Sequence[str]] = tuple,
    ) -> None:
        self._bar = Bar(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[metrics]}"),
            TimeRemainingColumn(),
            console=err,
            disable=not err.is_terminal,
        )
        self._done = sum(1 for record in before if record.scored)
        self._left = left
        total = None if left is None else left + self._done
        self._task = self._bar.add_task("episodes", total=total, completed=self._done, metrics="")
        self._success = success
        self._state = state
        self._ended = threading.Event()
        self._updates = threading.Thread(target=self._update, name="agentgym-progress", daemon=True)
        self._solved = self._judged = self._faults = self._tokens = self._played = 0
        self._began = time.monotonic()
        self._kinds: set[tuple[bool, str]] = set()
        for record in before:
            self._count(record)
        self._tokens = 0  # count only tokens of this session

    def __enter__(self) -> Self:
        self._bar.start()
        self._updates.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._updates.join()
        self._bar.stop()

    def _update(self) -> None:
        """Update the metrics of the bar, or print a line every `LINE_SECONDS`, and at the first trouble."""
        printed, known = time.monotonic(), set[str]()
        while not self._ended.wait(min(BAR_SECONDS, LINE_SECONDS)):
            if err.is_terminal:
                self._bar.update(self._task, metrics=self._metrics())
                continue
            trouble = {kind for kind in TROUBLE for words in self._state() if kind in words} - known
            if trouble or time.monotonic() - printed >= LINE_SECONDS:
                printed = time.monotonic()
                known |= trouble
                err.print(self._line())

    def _line(self) -> str:
        done, elapsed = self._done + self._played, time.monotonic() - self._began
        total = "" if self._left is None else f"/{self._done + self._left}"
        parts = [f"{done}{total} episodes", duration(elapsed), *filter(None, [self._metrics()])]
        if self._played and self._left is not None:
            parts.append(f"about {duration(elapsed / self._played * (self._left - self._played))} left")
        return "  ".join(parts)

    def note(self, record: EpisodeRecord) -> None:
        """Count an episode."""
        self._count(record)
        self._played += 1
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
        err.print(f"{' '.join(clean(line).split()):.{_MAX_LINE}}")

    def _metrics(self) -> str:
        metrics: list[str] = []
        if self._judged and self._success:
            metrics.append(f"success {self._solved / self._judged:.2f}")
        if self._faults:
            metrics.append(f"faults {self._faults}")
        metrics += map(clean, self._state())  # with messages of servers
        if self._tokens:
            metrics.append(f"{self._tokens / max(1e-9, time.monotonic() - self._began):,.0f} tokens/s")
        return "  ".join(metrics)


def duration(seconds: float) -> str:
    """Return seconds in words, such as ``8.5 s``, ``2 min 13 s`` or ``1 h 5 min``."""
    whole = round(seconds)
    if seconds < 60:  # noqa: PLR2004 - seconds
        return f"{seconds:.1f} s"
    if whole < 3600:  # noqa: PLR2004 - seconds
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"
