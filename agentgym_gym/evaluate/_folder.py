"""The folder of a run: the episodes, which are written as they end, and the summary."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import re
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, replace
from datetime import datetime, timezone
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any

from filelock import FileLock, Timeout

from agentgym_gym._files import replaces
from agentgym_gym._logging import logger
from agentgym_gym._text import shown
from agentgym_gym.errors import ArgumentName, BadFile, InUse
from agentgym_gym.evaluate._figures.metrics import Summary, counted, summarise
from agentgym_gym.evaluate._figures.prices import Price
from agentgym_gym.evaluate._run_metadata import git_state, versions
from agentgym_gym.evaluate._runs import EPISODES, SUMMARY, RunResult, counting
from agentgym_gym.evaluate._world import in_world, world_of
from agentgym_gym.rollout._records import EpisodeRecord, read_records
from agentgym_gym.rollout._writer import LineFile

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = ["RunFolder", "folder_name", "latest", "reserved"]

# Facts that must not change when a run is resumed; otherwise its averages would be meaningless.
_SAME = ("env_id", "protocol", "agent", "seed", "options")
_SAME_IF_KNOWN = ("agent_settings", "system_prompt", "rescored")  # summaries of earlier versions lack these

# Settings of an agent that do not affect its replies.
_MAY_DIFFER = frozenset({"base_url", "api_key_variable", "timeout", "retry_seconds", "openai"})

_LOCK = ".lock"
_UPDATE_SECONDS = 1.0
_MOST_COMMON = 20  # characters that are shown before the first difference of two texts


class RunFolder:
    """Stores the episodes of a run: one line each in ``episodes.jsonl``, and a ``summary.json`` of all.

    The summary is written when the run starts, about once per second while episodes end, and when the run
    ends, even with an error. Its ``run.finished`` records whether all episodes were played, and
    ``run.stopped`` why they were not. Only one process at a time can write into a folder.

    Args:
        path: The folder; created if it does not exist.
        run: Facts about the run for the summary, as JSON values: environment, agent, options and others. Any
            ``headers`` are removed, because they may contain tokens.
        resume: Whether to resume a run in the folder.
        planned: Task id and sample of each episode of the run. The run is finished once all of them are
            played. By default, it is finished if no error ended it.
        price: Price of the model's tokens, for the summary; a resumed run keeps its price by default.

    Attributes:
        path: The folder as an absolute path, because environments may change the working directory.
        run: The facts about the run.
        previous: The facts of the run before it was resumed; empty for a new run.
        records: The episodes so far, including those from before a resume.
        stopped: Why the run ended before all episodes were played, or None. An error that ends the run
            replaces None.
        stopped_by: The name of the budget that ended the run, or None.

    Raises:
        InUse: Another run is writing into the folder.
        BadOption: The folder contains a run and ``resume`` is false, or a run with other facts; or the folder
            is not writable.
    """

    def __init__(
        self,
        path: Path,
        run: Mapping[str, Any],
        *,
        resume: bool = False,
        planned: Iterable[tuple[int, int]] | None = None,
        price: Price | None = None,
    ) -> None:
        self.path = path = path.absolute()
        self.records: list[EpisodeRecord] = []
        self.previous: Mapping[str, Any] = {}
        self.run = _without_headers(run)
        self._price = price
        self._planned = None if planned is None else list(planned)
        self._began = time.monotonic()
        self._git = git_state()
        self.stopped: str | None = None
        self.stopped_by: str | None = None
        self._written: Mapping[str, Any] = self.run
        self._ended = threading.Event()
        self._updates = threading.Thread(target=self._update, name="agentgym-summary", daemon=True)
        try:
            path.mkdir(parents=True, exist_ok=True)
            self._lock = _lock_folder(path)
            try:
                self._file = self._continue() if resume and self._episodes.exists() else self._start()
            except BaseException:
                self._lock.release()
                raise
        except OSError as error:
            raise BadFile(f"cannot write to {path}: {error.strerror or error}", path=path) from error

    @property
    def summary(self) -> Summary:
        """The metrics of the episodes that count.

        The counters include all other episodes too, because their requests were sent.
        """
        records = list(self.records)  # episodes may end meanwhile
        return replace(summarise(counting(records), self._price), counters=counted(records))

    @property
    def result(self) -> RunResult:
        """The facts as last written to ``summary.json``, and the episodes that count."""
        summary = self.summary
        return RunResult(self.path, self._written, tuple(self.counting()), summary.cost, summary)

    def counting(self) -> list[EpisodeRecord]:
        """Return the episodes that count, one for each task and sample."""
        return counting(list(self.records))

    def remaining(
        self, episodes: Iterable[tuple[int, int]], *, retry_faulted: bool = False
    ) -> list[tuple[int, int]]:
        """Return the episodes that are left to play.

        Args:
            episodes: Task id and sample of each episode.
            retry_faulted: Whether to include faulted episodes that no later attempt replaced.
        """
        played = {
            (record.task_id, record.sample) for record in self.records if record.scored or not retry_faulted
        }
        return [episode for episode in episodes if episode not in played]

    def add(self, record: EpisodeRecord) -> None:
        """Append an episode to the file immediately."""
        self._file.append(record.to_json())
        self.records.append(record)

    @property
    def seconds(self) -> float:
        """Wall-clock seconds of the run, including those before it was resumed."""
        before = self.previous.get("wall_seconds")
        return (before if isinstance(before, float) else 0.0) + time.monotonic() - self._began

    def __enter__(self) -> Self:
        if self._price is not None:
            self.run["price"] = asdict(self._price)
        self._write_summary(finished=False)
        self._updates.start()
        return self

    def __exit__(
        self, error_type: type[BaseException] | None, error: BaseException | None, _: object
    ) -> None:
        self._ended.set()
        self._updates.join()
        if error_type is not None and self.stopped is None:
            self.stopped = f"{error_type.__name__}: {error}"
        try:
            self._file.close()
            if error_type is not None and not self.records:
                self._episodes.unlink(
                    missing_ok=True
                )  # no episode was played: another attempt needs no `resume`
            finished = error_type is None if self._planned is None else not self.remaining(self._planned)
            self._write_summary(finished=finished)
        finally:
            self._lock.release()

    @property
    def _episodes(self) -> Path:
        return self.path / EPISODES

    def _update(self) -> None:
        """Write the summary after new episodes, for at most a twentieth of the time."""
        written, pause = len(self.records), _UPDATE_SECONDS
        while not self._ended.wait(pause):
            count = len(self.records)
            if count == written:
                continue
            began = time.monotonic()
            try:
                self._write_summary(finished=False)
            except OSError as error:
                logger.warning("cannot write %s: %s", self.path / SUMMARY, error)
            written, pause = count, max(_UPDATE_SECONDS, 20 * (time.monotonic() - began))

    def _start(self) -> LineFile:
        try:
            return LineFile(self._episodes, new=True)
        except FileExistsError:
            raise BadFile(
                f"{self._episodes} exists and is not overwritten: set ",
                ArgumentName("resume"),
                " to continue that run, or choose another folder",
                path=self._episodes,
            ) from None

    def _continue(self) -> LineFile:
        self.records, whole = read_records(self._episodes, torn_end=True)
        self._check_same()
        if self._price is None:
            with contextlib.suppress(TypeError):  # no mapping, or not written by this library
                self._price = Price(**self.previous.get("price") or {})
        os.truncate(self._episodes, whole)
        return LineFile(self._episodes)

    def _check_same(self) -> None:
        summary = self.path / SUMMARY
        if not summary.exists():
            return
        try:
            before = self.previous = json.loads(summary.read_bytes())["run"]
            keys = [*_SAME, *(key for key in _SAME_IF_KNOWN if key in before)]
            different = [key for key in keys if _relevant(before.get(key)) != _relevant(self.run.get(key))]
            env_id = str(self.run.get("env_id"))
            worlds = [world_of(env_id, facts) for facts in (before, self.run) if "served_by" in facts]
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            raise BadFile(f"{summary} is not the summary of a run", path=summary) from None
        if different:
            key, old, new = _difference(different[0], before, self.run)
            raise BadFile(
                f"{self.path} has a run with {key} {shown(old)}, not {shown(new)}: resume with the same, "
                "or choose another folder",
                path=self.path,
            )
        if len(set(worlds)) > 1:
            played, now = (in_world(env_id, world) for world in worlds)
            raise BadFile(
                f"{self.path} has a run in {played}, not {now}: resume on the same world, or choose "
                "another folder",
                path=self.path,
            )

    def _write_summary(self, *, finished: bool) -> None:
        episodes = self.summary.to_json()  # first, as facts such as the usage must not be older than these
        run = {
            **self.run,
            "finished": finished,
            "stopped": None if finished else self.stopped,
            **({} if finished or self.stopped_by is None else {"stopped_by": self.stopped_by}),
            "written": datetime.now(timezone.utc).isoformat(timespec="seconds"),
            "wall_seconds": self.seconds,
            "versions": versions(),
            "git": self._git,
            "process": os.getpid(),
        }
        _write_json(self.path / SUMMARY, {**episodes, "run": run})
        self._written = run


def _write_json(path: Path, value: Any) -> None:
    with replaces(path) as part, part.open("w", encoding="utf-8") as file:
        json.dump(value, file, indent=2, ensure_ascii=False)
        file.write("\n")


def _without_headers(run: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: _without_headers(value) if isinstance(value, Mapping) else value
        for name, value in run.items()
        if name != "headers"
    }


def _relevant(value: Any) -> Any:
    """Return the part of a fact that affects the episodes."""
    if not isinstance(value, Mapping):
        return value
    return {key: each for key, each in value.items() if key not in _MAY_DIFFER}


def _difference(key: str, before: Mapping[str, Any], now: Mapping[str, Any]) -> tuple[str, Any, Any]:
    """Return the path of the first nested key with different values, and these, without a common start."""
    old, new = _relevant(before.get(key)), _relevant(now.get(key))
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        inner = next(name for name in [*old, *new] if old.get(name) != new.get(name))
        path, old, new = _difference(inner, old, new)
        return f"{key}.{path}", old, new
    if isinstance(old, str) and isinstance(new, str):
        pairs = enumerate(zip_longest(old, new))
        same = next((at for at, (one, other) in pairs if one != other), 0)
        if same > _MOST_COMMON:
            old, new = (f"…{text[same - _MOST_COMMON :]}" for text in (old, new))
    return key, old, new


def _lock_folder(folder: Path) -> FileLock:
    """Acquire the lock on a folder. The system releases it when this process ends, even after a crash.

    Raises:
        InUse: Another run has the lock.
    """
    lock = FileLock(folder / _LOCK, timeout=0, thread_local=False)
    try:
        lock.acquire()
    except Timeout:
        by = ""
        with contextlib.suppress(OSError, ValueError, TypeError, KeyError, RecursionError):
            by = f" (process {json.loads((folder / SUMMARY).read_bytes())['run']['process']})"
        raise InUse(
            f"another run{by} writes into {folder}: wait until it ends, or choose another folder"
        ) from None
    return lock


_RUNS = Path("runs")
_STAMP = re.compile(r"-(\d{8}T\d{6}Z)(?:-(\d+))?$")


def folder_name(text: str) -> str:
    """Convert a text to a valid folder name."""
    return re.sub(r"[^\w.-]+", "_", text).strip("._")[:120] or "run"


@contextlib.contextmanager
def reserved(name: str) -> Iterator[Path]:
    """Create a new folder such as ``runs/NAME-20261125T221530Z``, and remove it at the end if it is empty.

    No two runs get the same folder, since an existing one cannot be created: the next one gets ``-2``.

    Args:
        name: The name of the run, a valid folder name.

    Raises:
        BadOption: The folder cannot be created.
    """
    try:
        _RUNS.mkdir(exist_ok=True)
        folder = next(filter(_created, _candidates(f"{name}-{_now()}")))
    except OSError as error:
        raise BadFile(
            f"cannot write to {_RUNS.absolute()}: {error.strerror or error}; give another folder by ",
            ArgumentName("out"),
            path=_RUNS.absolute(),
        ) from error
    try:
        yield folder
    finally:
        with contextlib.suppress(OSError):
            folder.rmdir()  # fails unless it is empty


def latest(name: str) -> Path | None:
    """Return the newest folder that `reserved` created for this name, or None."""
    found: list[tuple[str, int, Path]] = []
    for folder in _RUNS.glob("*"):
        stamp = _STAMP.search(folder.name)
        if stamp is not None and folder.name[: stamp.start()] == name:
            found.append((stamp[1], int(stamp[2] or 1), folder))
    return max(found)[-1] if found else None


def _now() -> str:
    return time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())


def _candidates(stamped: str) -> Iterator[Path]:
    yield _RUNS / stamped
    yield from (_RUNS / f"{stamped}-{number}" for number in itertools.count(2))


def _created(folder: Path) -> bool:
    try:
        folder.mkdir()
    except FileExistsError:
        return False
    return True
