"""The data of a report: an index of all episodes, and the episodes themselves in compressed blocks."""

from __future__ import annotations

import base64
import gzip
import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from os.path import commonpath
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agentgym_gym._text import redact_within
from agentgym_gym.errors import BadOption
from agentgym_gym.evaluate._figures.by_step import by_step
from agentgym_gym.evaluate._figures.metrics import summarise
from agentgym_gym.evaluate._runs import find_runs, is_training, read_run
from agentgym_gym.evaluate._trainings import find_trainings, read_training

if TYPE_CHECKING:
    from agentgym_gym.evaluate._runs import Run
    from agentgym_gym.rollout._records import EpisodeRecord

__all__ = ["Contents", "collect", "packed"]

BLOCK_EPISODES = 64
BLOCK_BYTES = 2 << 20
"""Limits of a block, in episodes and in bytes before compression; the first one reached ends the block."""

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
        blocks: Blocks of episodes from `packed`, in the order of the index.
    """

    index: dict[str, Any]
    blocks: list[str]

    @property
    def runs(self) -> int:
        """Number of runs."""
        return len(self.index["runs"])

    @property
    def episodes(self) -> int:
        """Number of episodes in all runs."""
        return sum(len(run["episodes"]["task"]) for run in self.index["runs"])


def collect(paths: Iterable[Path], *, last: int | None = None) -> Contents:
    """Read runs one at a time, so that the memory contains only one uncompressed run.

    Args:
        paths: Folders of runs or trainings, or folders that contain them. Duplicates are read once.
        last: Number of last training steps whose episodes the page includes; by default all steps. Metrics
            cover all steps.

    Raises:
        BadOption: There is no run at a path, or a run cannot be read.
    """
    folders: dict[Path, Path] = {}
    for path in paths:
        for folder in _folders(path):
            folders.setdefault(folder.resolve(), folder)
    blocks: list[str] = []
    runs = [
        _run(run, name, blocks, last)
        for folder, name in zip(folders.values(), _names(list(folders)), strict=True)
        for run in (read_training(folder) if is_training(folder) else [read_run(folder)])
    ]
    return Contents({"runs": runs}, blocks)


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


def _run(run: Run, name: str, blocks: list[str], last: int | None) -> dict[str, Any]:
    """Return the index of a run, and append its blocks to ``blocks``."""
    first_block, starts = len(blocks), []
    records = run.records if last is None else _of_last_steps(run.records, last)
    for start, block in _blocks(records):
        starts.append(start)
        blocks.append(_packed(block))
    return {
        "name": name,
        "agent": run.agent,
        "env": run.env_id,
        "world": run.world,
        "facts": _facts(run.facts),
        "system_prompt": _text(run.facts.get("system_prompt")),
        "summary": _summary(run),
        "by_step": by_step(run.records),
        "episodes": _episodes(records),
        "first_block": first_block,
        "starts": starts,
    }


def _summary(run: Run) -> dict[str, Any]:
    summary = summarise(_of_last_steps(run.records, 1)).to_json()
    summary["timing"]["cost"] = run.cost  # prices are not recorded
    return summary


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
    }


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
