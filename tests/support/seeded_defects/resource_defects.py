"""Defects of resources and of time: leaks, children, double close, blocking and slow calls."""

from __future__ import annotations

import os
import time
from typing import Any

from seeded_defects.key_rooms import KeyRooms
from seeded_defects.number_game import AwaitedNumberGame, NumberGame
from seeded_defects.word_game import WordGame

_transcripts: list[list[str]] = []
_logs: list[int] = []


class MemoryLeak(NumberGame):
    """Keeps a table of 1,000 texts of every episode."""

    def start(self, task: int) -> str:
        """Start a round with a new table."""
        _transcripts.append([f"{number} of round {task}" for number in range(1000)])
        return super().start(task)


class DescriptorLeak(KeyRooms):
    """Opens a log file in every reset and closes none."""

    def start(self, task: int) -> str:
        """Open the log of the episode."""
        _logs.append(os.open(os.devnull, os.O_WRONLY))
        return super().start(task)


class ChildLeft(WordGame):
    """Starts a helper process with the first reset, which survives close."""

    _helper: int | None = None

    def start(self, task: int) -> str:
        """Start the helper."""
        if self._helper is None:
            self._helper = os.posix_spawnp("sleep", ["sleep", "90"], os.environ)
        return super().start(task)


class CloseTwice(NumberGame):
    """The second close fails, because the first one removes the log."""

    def __init__(self) -> None:
        super().__init__()
        self._log: list[str] | None = []

    def close(self) -> None:
        """Drop the log."""
        self._log.clear()  # type: ignore[union-attr]
        self._log = None


class BlockingSleep(AwaitedNumberGame):
    """Waits with ``time.sleep`` in a coroutine function."""

    async def step(self, action: str) -> Any:  # type: ignore[override]
        """Wait as for a model's reply."""
        time.sleep(0.15)  # noqa: ASYNC251 - the defect
        return await super().step(action)
