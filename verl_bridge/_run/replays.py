"""Retry faulted episodes, with exponential backoff and within a time budget.

A server that restarts or is full usually recovers, and by then a training run may have cost hours. A faulted
episode is therefore played again from its reset until it ends without a fault or its budget is used up. Some
faults are permanent: an exception whose attribute ``transient`` is False is not retried.

Many episodes fault at once when a server goes down. The log has one line for the first fault of each
environment and kind, then a summary of all others every `LOG_SECONDS`.
"""

from __future__ import annotations

import asyncio
import logging
import random
import threading
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from verl_bridge._run.labels import name_of, server_of, without_passwords

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agentgym_gym.rollout import Episode
    from verl_bridge.tasks import EnvTask

__all__ = ["FAULT_BUDGET", "LOG_SECONDS", "MAX_WAIT", "Replays", "budget_of", "log_excluded"]

FAULT_BUDGET = 600.0
"""Seconds within which a faulted episode is retried, counted from its first fault."""

FIRST_WAIT = 1.0
"""Seconds before the first retry; doubled for each further one."""

MAX_WAIT = 30.0
"""Maximum seconds before a retry."""

LOG_SECONDS = 10.0
"""Seconds between two summaries in the log."""

_MOST_SHOWN = 300  # characters of a message

_log = logging.getLogger(__name__)


class Replays:
    """The retries of one episode, and their time budget.

    Args:
        task: The task of the episode.
        budget: Seconds from the first fault; 0 for no retry.

    Attributes:
        count: How often the episode was retried.
    """

    def __init__(self, task: EnvTask, budget: float = FAULT_BUDGET) -> None:
        self.task = task
        self.count = 0
        self._budget = budget
        self._until: float | None = None

    async def wait(self, episode: Episode) -> bool:
        """Wait before the next retry; return False if there is none.

        The last wait ends when the budget does, so that a server that recovers in time is still used.

        Args:
            episode: The episode as it ended.
        """
        fault = episode.fault
        if fault is None:
            if self.count:
                _replay_log.add(self.task, "played", f"played at last, after {_replays(self.count)}")
            return False
        now = time.monotonic()
        self._until = self._until or now + self._budget
        left = self._until - now
        text = _fault_text(fault)
        if not episode.transient:
            _replay_log.add(
                self.task, fault["kind"], f"{text}. This fault is permanent: the episode is left out"
            )
            return False
        if left <= 0:
            tried = f"{_replays(self.count)} in {self._budget:g} s"
            _replay_log.add(
                self.task, f"{fault['kind']}, left out", f"{text}. The episode is left out after {tried}"
            )
            return False
        # Jitter, so that a recovered server does not receive all requests at once.
        wait = min(MAX_WAIT, FIRST_WAIT * 2 ** min(self.count, 30)) * (0.5 + random.random() / 2)  # noqa: S311
        wait = min(wait, left)
        self.count += 1
        tried = f"Replay {self.count} follows in {wait:.1f} s, {left:.0f} s are left for more"
        _replay_log.add(self.task, fault["kind"], f"{text}. {tried}")
        await asyncio.sleep(wait)
        return True


def log_excluded(task: EnvTask, episode: Episode) -> None:
    """Log the fault of an episode that cannot be retried because other code started it."""
    if episode.fault is not None:
        kind, text = episode.fault["kind"], _fault_text(episode.fault)
        _replay_log.add(task, f"{kind}, left out", f"{text}. The episode is left out")


def _fault_text(fault: Mapping[str, str]) -> str:
    return f"{fault['kind']}: {without_passwords(fault['message'])}"[:_MOST_SHOWN]


def budget_of(value: Any) -> float:
    """Return a budget from a yaml file; `FAULT_BUDGET` if there is none.

    Raises:
        ValueError: It is negative or not a number of seconds.
    """
    if value is None:
        return FAULT_BUDGET
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < float("inf"):
        raise ValueError(f"fault_budget={value!r} should be a number of seconds from 0; 0 disables retries")
    return float(value)


@dataclass
class _Repeated:
    """Counts of one environment and kind of fault: lines logged, and lines for the next summary."""

    at: float
    more: int = 0
    tasks: set[str] = field(default_factory=set)
    latest: str = ""


class _ReplayLog:
    """The log of all episodes of this process: the first line of each kind, then summaries."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._repeated: dict[tuple[str, ...], _Repeated] = {}

    def add(self, task: EnvTask, kind: str, text: str) -> None:
        """Log a line about an episode, or count it for the next summary.

        Args:
            task: The task of the episode.
            kind: Lines of the same kind are summarized together.
            text: The line.
        """
        server = server_of(task)
        line = f"task {name_of(task)}{server and f' at {server}'}: {text}"
        key = (task.env_id, server, kind)
        with self._lock:
            repeated = self._repeated.get(key)
            if repeated is None or time.monotonic() - repeated.at >= LOG_SECONDS:
                self._summarize(task.env_id, repeated)
                self._repeated[key] = _Repeated(time.monotonic())
                _log.warning("%s, %s", task.env_id, line)
                return
            if not repeated.more:
                asyncio.get_running_loop().call_later(LOG_SECONDS, self._log_summary, task.env_id, key)
            repeated.more += 1
            repeated.tasks.add(name_of(task))
            repeated.latest = line

    def _log_summary(self, env_id: str, key: tuple[str, ...]) -> None:
        with self._lock:
            repeated = self._repeated[key]
            self._summarize(env_id, repeated)
            self._repeated[key] = _Repeated(time.monotonic())

    def _summarize(self, env_id: str, repeated: _Repeated | None) -> None:
        if repeated is not None and repeated.more:
            seconds = time.monotonic() - repeated.at
            counted = f"{repeated.more} similar lines in {seconds:.0f} s, of {len(repeated.tasks)} tasks"
            _log.warning("%s: %s; the last: %s", env_id, counted, repeated.latest)


_replay_log = _ReplayLog()


def _replays(count: int) -> str:
    return f"{count} replay{'s' * (count != 1)}"
