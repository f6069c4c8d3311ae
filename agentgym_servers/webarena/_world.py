"""The generated world: a task for each id, each in one of the states of the sites."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from agentgym_servers._frame.draw import Draw
from agentgym_servers.webarena._sites.addresses import OWN_ADDRESSES
from agentgym_servers.webarena._sites.state import STATES, SiteState, fresh_state, state_of
from agentgym_servers.webarena._task import WebArenaTask
from agentgym_servers.webarena._templates import TEMPLATES
from agentgym_servers.webarena._templates.joined import join, joinable

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from agentgym_servers.webarena._templates.template import Made, TaskTemplate

__all__ = ["FIRST_TEST_TASK", "TASKS", "GeneratedWorld", "world_of"]

TASKS = 812
"""The number of tasks, as in WebArena."""

FIRST_TEST_TASK = 648
"""The first task of the split ``test``; no earlier task has the same states of the sites."""

_TRAIN_STATES = 8
_ROUNDS = 12  # of all templates; the tasks of a state are found in the first
_PARTS = (1, 2, 3)  # how many templates make a task; WebArena's tasks are longer than most templates
_TRIES = 6  # of templates before another one that go together with it


class GeneratedWorld:
    """The tasks of a seed.

    Args:
        seed: The seed.
    """

    addresses = OWN_ADDRESSES
    settle_seconds = check_seconds = 0.0  # our own sites have no content that comes later

    def __init__(self, seed: int) -> None:
        self._seed = seed

    def task(self, task_id: int) -> WebArenaTask:
        """Return a task.

        Raises:
            LookupError: There is no such task.
        """
        if not 0 <= task_id < TASKS:
            raise LookupError(f"there is no task {task_id}; they are 0 to {TASKS - 1}")
        number, first, after = _share_of(task_id)
        return _tasks(self._seed, number, after - first)[task_id - first]

    def fresh_state(self, task: WebArenaTask) -> SiteState:
        """Return the state of the sites at the start of a task."""
        return fresh_state(self._seed, task.state)


def _share_of(task_id: int) -> tuple[int, int, int]:
    """Return the state of a task, the first task of that state, and the first of the next one."""
    start, end, states, before = 0, FIRST_TEST_TASK, _TRAIN_STATES, 0
    if task_id >= FIRST_TEST_TASK:
        start, end, states, before = FIRST_TEST_TASK, TASKS, STATES - _TRAIN_STATES, _TRAIN_STATES
    size = (end - start) // states
    share = min((task_id - start) // size, states - 1)
    first = start + share * size
    return before + share, first, end if share == states - 1 else first + size


@functools.lru_cache(maxsize=4 * STATES)
def _tasks(seed: int, number: int, count: int) -> list[WebArenaTask]:
    """Return the tasks of one state, each intent once."""
    tasks: dict[str, WebArenaTask] = {}
    for templates, made in _candidates(seed, number):
        tasks.setdefault(made.intent, _task(templates, made, number))
        if len(tasks) == count:
            return list(tasks.values())
    raise RuntimeError(f"only {len(tasks)} of {count} tasks were found for the state {number}")


def _candidates(seed: int, number: int) -> Iterator[tuple[Sequence[TaskTemplate], Made]]:
    """Yield tasks of one state with their templates: of each in turn one by itself, and two longer ones."""
    state = state_of(seed, number)
    first = number * len(TEMPLATES) // STATES  # so that no template is left out in all states
    for turn in range(_ROUNDS):
        for each in TEMPLATES[first:] + TEMPLATES[:first]:
            draw = Draw("webarena", seed, number, each.name, turn)
            for parts in _PARTS:
                for _ in range(_TRIES):
                    templates = _chosen(each, parts, draw)
                    made = _made(state, templates, draw)
                    if made is not None:
                        yield templates, made
                        break


def _chosen(last: TaskTemplate, parts: int, draw: Draw) -> list[TaskTemplate]:
    """Return the templates of a task: the last one, and others before it if their sites share no data."""
    chosen = [last]
    while len(chosen) < parts:
        chosen.insert(0, draw.one(joinable(frozenset(site for each in chosen for site in each.sites))))
    return chosen


def _made(state: SiteState, templates: Sequence[TaskTemplate], draw: Draw) -> Made | None:
    made = [(each, each.make(state, draw)) for each in templates]
    parts = [(template, part) for template, part in made if part is not None]
    return join(parts) if len(parts) == len(made) else None


def _task(templates: Sequence[TaskTemplate], made: Made, number: int) -> WebArenaTask:
    sites = tuple(dict.fromkeys(site for each in templates for site in each.sites))
    start = OWN_ADDRESSES.local[f"__{sites[0].upper()}__"]
    check = OWN_ADDRESSES.fill_all(made.check)
    name = " + ".join(each.name for each in templates)
    return WebArenaTask(sites, made.intent, (start,), check, number, None, name, made.steps)


@functools.lru_cache(maxsize=8)
def world_of(seed: int) -> GeneratedWorld:
    """Return the world of a seed."""
    return GeneratedWorld(seed)
