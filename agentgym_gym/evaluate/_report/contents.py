"""What a report holds: an index of all episodes, and the episodes themselves in compressed blocks."""

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
"""A block ends where it has so many episodes, or so many bytes before it is compressed."""

_EXACT = 2**53  # the whole numbers that JavaScript tells apart end here
_IN_INDEX = frozenset(
    {"env_id", "agent", "task_id", "sample", "counters", "step", "validation", "session", "ended"}
)
_NOT_SHOWN = frozenset({"headers", "system_prompt"})


@dataclass(frozen=True)
class Contents:
    """What a page holds.

    Attributes:
        index: What the summary and the grid show, as JSON values.
        blocks: The episodes, as `packed` returns them, in the order of the index.
    """

    index: dict[str, Any]
    blocks: list[str]

    @property
    def runs(self) -> int:
        """How many runs there are."""
        return len(self.index["runs"])

    @property
    def episodes(self) -> int:
        """How many episodes there are in all runs."""
        return sum(len(run["episodes"]["task"]) for run in self.index["runs"])


def collect(paths: Iterable[Path], *, last: int | None = None) -> Contents:
    """Read runs, one after another, so that only one is in memory as it was written.

    Args:
        paths: Folders of runs or trainings, or folders with such below them. One that is named twice is there
            once.
        last: Of how many steps of a training, its last ones, the episodes are in the page; by default of all.
            Figures are of all steps.

    Raises:
        BadOption: There is no run at a path, or one cannot be read.
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
    """Return the folders of runs and trainings at a path.

    Raises:
        BadOption: There is none.
    """
    trainings = find_trainings(path)
    try:
        return [*(folder for folder in find_runs(path) if folder not in trainings), *trainings]
    except BadOption:
        if not trainings:
            raise
        return trainings


def packed(value: Any) -> str:
    """Return a JSON value compressed, in letters that need no escape in HTML: base64 of gzip.

    Args:
        value: The value. What JSON has no word for, as NaN, becomes null; lone surrogates stay.
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
    """Return short names that tell the folders apart: where they lie below the folder that they share."""
    if len(folders) == 1:
        return [folders[0].name]
    try:
        shared = Path(commonpath(folder.parent for folder in folders))
    except ValueError:  # on two drives
        return [str(folder) for folder in folders]
    return [folder.relative_to(shared).as_posix() for folder in folders]


def _run(run: Run, name: str, blocks: list[str], last: int | None) -> dict[str, Any]:
    """Return the index of a run, and add its blocks to those there are."""
    first_block, starts = len(blocks), []
    records = run.records if last is None else _of_last_steps(run.records, last)
    for start, block in _blocks(records):
        starts.append(start)
        blocks.append(_packed(block))
    return {
        "name": name,
        "agent": run.agent,
        "env": run.env_id,
        "worlds": list(run.worlds),
        "facts": _facts(run.facts),
        "system_prompt": _text(run.facts.get("system_prompt")),
        "summary": summarise(_of_last_steps(run.records, 1)).to_json(),
        "by_step": by_step(run.records),
        "episodes": _episodes(records),
        "first_block": first_block,
        "starts": starts,
    }


def _of_last_steps(records: Sequence[EpisodeRecord], last: int) -> list[EpisodeRecord]:
    """Return the episodes of the last steps of a training, and those of which the step is not known."""
    steps = sorted({record.step for record in records if record.step is not None})[-last:]
    return [record for record in records if record.step is None or record.step in steps]


def _blocks(records: Sequence[EpisodeRecord]) -> Iterator[tuple[int, str]]:
    """Yield blocks of episodes as JSON, each with the place of its first among all."""
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
    """Return what the grid shows of each episode, by columns, with each text once."""
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
    """Return what made a run, without what is shown elsewhere and what nobody else should read."""
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
