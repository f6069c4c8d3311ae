"""The tasks of SciWorld by id, and its splits.

AgentGym's server numbers the variations of 23 of the simulator's 30 kinds of tasks, one kind after the other;
it omits plants, genetics and inclined planes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

__all__ = ["TASK_COUNT", "UNWINNABLE", "SciWorldTask", "splits", "task_of"]

_KINDS: Mapping[str, int] = {
    "boil": 30,
    "melt": 30,
    "freeze": 30,
    "change-the-state-of-matter-of": 30,
    "use-thermometer": 540,
    "measure-melting-point-known-substance": 436,
    "measure-melting-point-unknown-substance": 300,
    "power-component": 20,
    "power-component-renewable-vs-nonrenewable-energy": 20,
    "test-conductivity": 900,
    "test-conductivity-of-unknown-substances": 600,
    "find-living-thing": 300,
    "find-non-living-thing": 300,
    "find-plant": 300,
    "find-animal": 300,
    "chemistry-mix": 32,
    "chemistry-mix-paint-secondary-color": 36,
    "chemistry-mix-paint-tertiary-color": 36,
    "lifespan-longest-lived": 125,
    "lifespan-shortest-lived": 125,
    "lifespan-longest-lived-then-shortest-lived": 125,
    "identify-life-stages-1": 14,
    "identify-life-stages-2": 10,
}

_LONG = "the known solution takes more than 30 turns"
_WRONG = "the known solution does not win"

UNWINNABLE: Mapping[int, str] = {
    28: f"boil: {_LONG}",
    **dict.fromkeys((54, 55), f"melt: {_WRONG}"),
    82: f"freeze: {_LONG}",
    **dict.fromkeys((871, 886), f"measure-melting-point-known-substance: {_WRONG}"),
    **dict.fromkeys((1106, 1156), f"measure-melting-point-unknown-substance: {_WRONG}"),
    **dict.fromkeys((2039, 2042, 2043, 2047, 2051, 2052, 2055, 2058, 2060), f"test-conductivity: {_WRONG}"),
    **dict.fromkeys((4615, 4617, 4621, *range(4623, 4628)), f"identify-life-stages-1: {_LONG}"),
}
"""Tasks that ``make sciworld`` did not win within the turn limit, with the reason."""

TASK_COUNT = sum(_KINDS.values())
"""The number of tasks; the first one is 0."""


@dataclass(frozen=True)
class SciWorldTask:
    """A task as the simulator names it.

    Attributes:
        kind: The kind of task.
        variation: The variation of that kind, which is also the seed of its house.
    """

    kind: str
    variation: int


def task_of(task_id: int) -> SciWorldTask:
    """Return a task by its id.

    Raises:
        LookupError: There is no such task.
    """
    if task_id >= 0:
        variation = task_id
        for kind, count in _KINDS.items():
            if variation < count:
                return SciWorldTask(kind, variation)
            variation -= count
    raise LookupError(f"there is no task {task_id}; the ids are 0 to {TASK_COUNT - 1}")


def splits(unwinnable: Mapping[int, str]) -> dict[str, Sequence[int]]:
    """Return the splits: ``all``, and ScienceWorld's own division of the variations of each kind.

    The first half of the variations is for training, the next quarter for development and the rest for tests.

    Args:
        unwinnable: Tasks that are only in ``all``.
    """
    parts: dict[str, list[int]] = {"train": [], "dev": [], "test": []}
    for first, count in _first_ids():
        quarter = count // 4
        bounds = (0, 2 * quarter, 3 * quarter, count)
        for name, start, stop in zip(parts, bounds, bounds[1:], strict=False):
            parts[name] += (first + i for i in range(start, stop) if first + i not in unwinnable)
    return {"all": range(TASK_COUNT), **{name: tuple(part) for name, part in parts.items()}}


def _first_ids() -> Iterator[tuple[int, int]]:
    first = 0
    for count in _KINDS.values():
        yield first, count
        first += count
