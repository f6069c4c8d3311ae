"""The data of a report: an index of all episodes, and the episodes themselves in compressed blocks."""

from __future__ import annotations

import base64
import contextlib
import gzip
import hashlib
import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from os.path import commonpath
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from agentgym_gym._text import redact_within
from agentgym_gym.errors import BadOption
from agentgym_gym.evaluate._figures.by_step import by_step
from agentgym_gym.evaluate._figures.failures import ENDINGS, FAILURES, failures_of
from agentgym_gym.evaluate._figures.metrics import summarise
from agentgym_gym.evaluate._report.several_runs import compare_all, letter_of, matrix
from agentgym_gym.evaluate._runs import EPISODES, SUMMARY, TRAINING_EPISODES, find_runs, is_training, read_run
from agentgym_gym.evaluate._trainings import find_trainings, read_training

if TYPE_CHECKING:
    from agentgym_gym.evaluate._figures.metrics import Summary
    from agentgym_gym.evaluate._runs import RunResult
    from agentgym_gym.rollout._records import EpisodeRecord

__all__ = ["Contents", "Reader", "Stamp", "collect", "packed"]

BLOCK_EPISODES = 64
BLOCK_BYTES = 2 << 20
"""Limits of a block, in episodes and in bytes before compression; the first one reached ends the block."""

_KINDS = list(FAILURES)
_EXACT = 2**53  # JavaScript numbers represent integers exactly up to here
_IN_INDEX = frozenset(
    {"env_id", "agent", "task_id", "sample", "counters", "step", "validation", "session", "ended"}
)
_NOT_SHOWN = frozenset({"headers", "system_prompt"})


@dataclass(frozen=True)
class Contents:
    """The data of a page.

    Attributes:
        index: Data of the summary and the grid, as JSON values.
        blocks: Blocks of episodes from `packed`, by the names that the index gives them.
        evaluations: The runs of ``agentgym eval`` by their letters, with episodes without transcripts.
    """

    index: dict[str, Any]
    blocks: dict[str, str]
    evaluations: dict[str, RunResult]

    @property
    def runs(self) -> int:
        """Number of runs."""
        return len(self.index["runs"])

    @property
    def episodes(self) -> int:
        """Number of episodes in all runs."""
        return sum(len(run["episodes"]["task"]) for run in self.index["runs"])

    def comparisons(self) -> str:
        """Return the comparisons of the runs, from `packed`. They take most of the time of a report."""
        return packed(compare_all(self.evaluations))


@dataclass(frozen=True)
class _Part:
    """A run as a part of a page.

    Attributes:
        index: Its index, without its letter.
        blocks: Its blocks by name.
        summary: Its metrics.
        run: The run, with episodes without transcripts.
    """

    index: dict[str, Any]
    blocks: dict[str, str]
    summary: Summary
    run: RunResult


class Reader:
    """Reads runs and trainings, one at a time, so that the memory contains only one uncompressed run.

    Args:
        paths: Folders of runs or trainings, or folders that contain them. Duplicates are read once.
        last: Number of last training steps whose episodes the page includes; by default all steps. Metrics
            cover all steps.
    """

    def __init__(self, paths: Iterable[Path], *, last: int | None = None) -> None:
        self._paths = list(paths)
        self._last = last
        self._known: dict[Path, tuple[Stamp, list[_Part]]] = {}

    def folders(self) -> list[Path]:
        """Return the folders of all runs and trainings.

        Raises:
            BadOption: There is no run at a path.
        """
        return list({folder.resolve(): folder for path in self._paths for folder in _folders(path)}.values())

    def stamps(self) -> list[Stamp]:
        """Return a value that differs when the files of a run have changed, or when there are other runs."""
        return [_stamp(folder) for folder in self.folders()]

    def collect(self) -> Contents:
        """Read the runs whose files have changed since the last call, and return all.

        Raises:
            BadOption: There is no run at a path, or a run cannot be read.
        """
        known, self._known = self._known, {}
        folders = self.folders()
        parts: list[_Part] = []
        for folder, name in zip(folders, _names(folders), strict=True):
            stamp = _stamp(folder)
            before, own = known.get(folder, (None, []))
            if stamp != before:
                runs = read_training(folder) if is_training(folder) else [read_run(folder)]
                own = [_part(run, self._last) for run in runs]
            self._known[folder] = stamp, own
            parts += [replace(part, index={**part.index, "name": name}) for part in own]
        letters = [letter_of(i) for i in range(len(parts))]
        evaluations = [i for i, part in enumerate(parts) if "phase" not in part.run.facts]
        index = {
            "runs": [{"letter": letter, **part.index} for letter, part in zip(letters, parts, strict=True)],
            "matrix": matrix([(i, parts[i].run, parts[i].summary) for i in evaluations]),
            "failures": FAILURES,
            "failure_endings": list(ENDINGS),
        }
        blocks = {name: block for part in parts for name, block in part.blocks.items()}
        return Contents(index, blocks, {letters[i]: parts[i].run for i in evaluations})


def collect(paths: Iterable[Path], *, last: int | None = None) -> Contents:
    """Read runs once; arguments and errors as for `Reader`."""
    return Reader(paths, last=last).collect()


Stamp: TypeAlias = "tuple[tuple[str, int, int], ...]"


def _stamp(folder: Path) -> Stamp:
    """Return the names, sizes and times of the files of a run or training."""
    found = []
    for pattern in (EPISODES, SUMMARY, TRAINING_EPISODES, "run-*.json"):
        for file in sorted(folder.glob(pattern)):
            with contextlib.suppress(OSError):  # replaced meanwhile
                stat = file.stat()
                found.append((str(file), stat.st_size, stat.st_mtime_ns))
    return tuple(found)


def _folders(path: Path) -> list[Path]:
    """Return the run and training folders at a path.

    Raises:
        BadOption: There is neither a run nor a training.
    """
    trainings = find_trainings(path)
    try:
        return [*(folder for folder in find_runs(path) if folder not in trainings), *trainings]
    except BadOption:
        if not trainings:
            raise
        return trainings


def packed(value: Any) -> str:
    """Return a JSON value as base64 of gzip, which needs no escaping in HTML.

    Args:
        value: The value. Numbers that JSON cannot represent, such as NaN, become null. Lone surrogates stay.
    """
    return _packed(_json(value))


def _packed(text: str) -> str:
    return base64.b64encode(gzip.compress(text.encode("ascii"), mtime=0)).decode("ascii")


def _json(value: Any) -> str:
    try:
        return json.dumps(value, separators=(",", ":"), allow_nan=False)
    except ValueError:
        return json.dumps(_finite(value), separators=(",", ":"), allow_nan=False)


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {key: _finite(each) for key, each in value.items()}
    return [_finite(each) for each in value] if isinstance(value, (list, tuple)) else value


def _names(folders: Sequence[Path]) -> list[str]:
    """Return short unique names of folders: their paths relative to their common parent."""
    if len(folders) == 1:
        return [folders[0].name]
    try:
        shared = Path(commonpath(folder.parent for folder in folders))
    except ValueError:  # on two drives
        return [str(folder) for folder in folders]
    return [folder.relative_to(shared).as_posix() for folder in folders]


def _part(run: RunResult, last: int | None) -> _Part:
    records = run.records if last is None else _of_last_steps(run.records, last)
    blocks, names, starts = {}, [], []
    for start, block in _blocks(records):
        starts.append(start)
        names.append(_block_name(block))
        blocks[names[-1]] = _packed(block)
    # Prices are not recorded, so the cost is the recorded one.
    summary = replace(summarise(_of_last_steps(run.records, 1)), cost=run.cost)
    index = {
        "agent": run.agent,
        "env": run.env_id,
        "world": run.world,
        "facts": _facts(run.facts),
        "system_prompt": _text(run.facts.get("system_prompt")),
        "summary": {**summary.to_json(), "wall_seconds": run.facts.get("wall_seconds")},
        "by_step": by_step(run.records),
        "episodes": _episodes(records),
        "blocks": names,
        "starts": starts,
    }
    short = tuple(replace(record, messages=(), steps=(), rewards=(), counters=None) for record in run.records)
    return _Part(index, blocks, summary, replace(run, records=short))


def _block_name(block: str) -> str:
    """Return a name that depends only on the content, so that a browser can keep an unchanged block."""
    return f"block-{hashlib.sha256(block.encode('ascii')).hexdigest()[:24]}"


def _of_last_steps(records: Sequence[EpisodeRecord], last: int) -> list[EpisodeRecord]:
    """Return the episodes of the last steps of a training, and the episodes without a step."""
    steps = sorted({record.step for record in records if record.step is not None})[-last:]
    return [record for record in records if record.step is None or record.step in steps]


def _blocks(records: Sequence[EpisodeRecord]) -> Iterator[tuple[int, str]]:
    """Yield blocks of episodes as JSON, each with the index of its first episode."""
    held: list[str] = []
    start = size = 0
    for place, record in enumerate(records):
        if held and (len(held) == BLOCK_EPISODES or size >= BLOCK_BYTES):
            yield start, f"[{','.join(held)}]"
            held, start, size = [], place, 0
        episode = {key: value for key, value in record.to_json().items() if key not in _IN_INDEX}
        held.append(_json(episode))
        size += len(held[-1])
    if held:
        yield start, f"[{','.join(held)}]"


def _episodes(records: Sequence[EpisodeRecord]) -> dict[str, list[Any] | None]:
    """Return the grid's data as columns, with deduplicated texts."""
    steps = [record.step for record in records]
    endings = list(dict.fromkeys(record.ending for record in records))
    goals = list(dict.fromkeys(record.goal for record in records))
    ending_of = {ending: number for number, ending in enumerate(endings)}
    goal_of = {goal: number for number, goal in enumerate(goals)}
    return {
        "endings": endings,
        "goals": goals,
        "task": [_whole(record.task_id) for record in records],
        "sample": [_whole(record.sample) for record in records],
        "step": steps if any(step is not None for step in steps) else None,
        "success": [record.success for record in records],
        "score": [record.score for record in records],
        "turns": [record.turns for record in records],
        "fault": [_whose_fault(record) for record in records],
        "ending": [ending_of[record.ending] for record in records],
        "goal": [goal_of[record.goal] for record in records],
        "failures": [_bits(record) for record in records],
    }


def _bits(record: EpisodeRecord) -> int:
    """Return the kinds of failures as bits, in the order of `FAILURES`."""
    return sum(1 << _KINDS.index(kind) for kind in failures_of(record))


def _whose_fault(record: EpisodeRecord) -> str | None:
    if record.fault is not None:
        return "fault"
    return None if record.agent_fault is None else "agent_fault"


def _whole(number: int) -> int | str:
    return number if abs(number) < _EXACT else str(number)


def _facts(facts: Mapping[str, Any]) -> dict[str, Any]:
    """Return the facts about a run for display, without secrets and fields shown elsewhere."""
    shown = {key: value for key, value in facts.items() if key not in _NOT_SHOWN}
    return {key: _public(value) for key, value in shown.items()}


def _public(value: Any) -> Any:
    if isinstance(value, str):
        return redact_within(value)
    if isinstance(value, Mapping):
        return {key: _public(each) for key, each in value.items() if key not in _NOT_SHOWN}
    return [_public(each) for each in value] if isinstance(value, (list, tuple)) else value


def _text(value: Any) -> str | None:
    return value if value is None or isinstance(value, str) else json.dumps(value, indent=2)
