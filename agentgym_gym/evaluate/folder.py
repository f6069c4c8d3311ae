"""The folder of a run: the episodes, recorded as they end, and the summary."""

from __future__ import annotations

import json
import os
import platform
import time
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime, timezone
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agentgym_gym import __version__
from agentgym_gym.errors import BadOption
from agentgym_gym.evaluate.metrics import Summary, counted, summarise
from agentgym_gym.evaluate.records import EpisodeRecord, read_records
from agentgym_gym.evaluate.runs import EPISODES, SUMMARY

if TYPE_CHECKING:
    from typing import TextIO

    from typing_extensions import Self

__all__ = ["RunFolder", "versions"]

# What must be the same for two parts of one run; averages over anything else would mean nothing.
_SAME = ("env_id", "agent", "seed", "options")


class RunFolder:
    """Keeps the episodes of a run: a line each in ``episodes.jsonl``, and ``summary.json`` over all of them.

    The summary is written when the run begins and when it ends, also by an error. Its ``run.finished`` says
    whether all tasks were played.

    Args:
        path: The folder; created if it does not exist.
        run: Facts about the run for the summary, as JSON values: environment, agent, options and the like.
            ``headers`` in it are left out, since they may hold tokens.
        resume: Whether to go on with a run that is in the folder.

    Attributes:
        records: The episodes so far, including those of a run that was resumed.

    Raises:
        BadOption: The folder holds a run and ``resume`` is false, or one of something else; or it cannot be
            written to.
    """

    def __init__(self, path: Path, run: Mapping[str, Any], *, resume: bool = False) -> None:
        self.path = path
        self.records: list[EpisodeRecord] = []
        self._run = _without_headers(run)
        self._began = time.monotonic()
        try:
            path.mkdir(parents=True, exist_ok=True)
            self._file = self._continue() if resume and self._episodes.exists() else self._start()
        except OSError as error:
            raise BadOption(f"cannot write to {path}: {error.strerror or error}") from error

    @property
    def summary(self) -> Summary:
        """The counts so far, without faulted episodes whose task was played again later.

        The counters include those episodes too, since their requests were sent.
        """
        last: list[EpisodeRecord] = []
        seen: set[int] = set()
        for record in reversed(self.records):
            if record.fault is None or record.task_id not in seen:
                last.append(record)
            seen.add(record.task_id)
        return replace(summarise(last), counters=counted(self.records))

    def remaining(self, tasks: Iterable[int]) -> list[int]:
        """Return the tasks that were not played, or whose episode a fault ended."""
        played = {record.task_id for record in self.records if record.fault is None}
        return [task for task in tasks if task not in played]

    def add(self, record: EpisodeRecord) -> None:
        """Record an episode at once."""
        self._file.write(json.dumps(record.to_json(), ensure_ascii=False, allow_nan=False) + "\n")
        self._file.flush()
        self.records.append(record)

    def __enter__(self) -> Self:
        self._write_summary(finished=False)
        return self

    def __exit__(self, error_type: type[BaseException] | None, *_: object) -> None:
        self._file.close()
        if error_type is not None and not self.records:
            self._episodes.unlink()  # nothing was played: another attempt need not be told to resume
        self._write_summary(finished=error_type is None)

    @property
    def _episodes(self) -> Path:
        return self.path / EPISODES

    def _start(self) -> TextIO:
        try:
            return self._episodes.open("x", encoding="utf-8")
        except FileExistsError:
            raise BadOption(
                f"{self._episodes} exists and is not overwritten: go on with that run by --resume, or choose "
                "another folder"
            ) from None

    def _continue(self) -> TextIO:
        self.records, whole = read_records(self._episodes, torn_end=True)
        self._check_same()
        os.truncate(self._episodes, whole)
        return self._episodes.open("a", encoding="utf-8")

    def _check_same(self) -> None:
        summary = self.path / SUMMARY
        if not summary.exists():
            return
        try:
            before = json.loads(summary.read_bytes())["run"]
            different = [key for key in _SAME if before.get(key) != self._run.get(key)]
        except (ValueError, TypeError, KeyError, AttributeError):
            raise BadOption(f"{summary} is not the summary of a run") from None
        if different:
            key = different[0]
            raise BadOption(
                f"{self.path} holds a run with {key} {before.get(key)!r}, not {self._run.get(key)!r}: "
                "resume with the same, or choose another folder"
            )

    def _write_summary(self, *, finished: bool) -> None:
        run = {
            **self._run,
            "finished": finished,
            "written": datetime.now(timezone.utc).isoformat(timespec="seconds"),
            "wall_seconds": time.monotonic() - self._began,
            "versions": versions(),
        }
        _write_atomically(self.path / SUMMARY, {**self.summary.to_json(), "run": run})


def versions(*others: str) -> dict[str, str | None]:
    """Return the versions of Python, this library, its dependencies and other packages; None if missing."""
    found: dict[str, str | None] = {"python": platform.python_version(), "agentgym-gym": __version__}
    for package in ("gymnasium", "httpx", "numpy", *others):
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            found[package] = None
    return found


def _write_atomically(path: Path, value: Any) -> None:
    """Write JSON so that a reader finds the whole old file or the whole new one."""
    part = path.with_name(f".{path.name}.part")
    with part.open("w", encoding="utf-8") as file:
        json.dump(value, file, indent=2, ensure_ascii=False)
        file.write("\n")
        file.flush()
        os.fsync(file.fileno())
    part.replace(path)


def _without_headers(run: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: _without_headers(value) if isinstance(value, Mapping) else value
        for name, value in run.items()
        if name != "headers"
    }
