"""The world of the SQLGym server: ten databases, and a question for each task, generated from a seed."""

from __future__ import annotations

import contextlib
import itertools
import threading
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol

from agentgym_servers._frame.draw import Draw
from agentgym_servers.sqlgym._questions import SqlQuestion, questions
from agentgym_servers.sqlgym._rows import opened, rows_of, script_of
from agentgym_servers.sqlgym._schema import DEV, TRAIN

__all__ = ["DEV_IDS", "TRAIN_IDS", "DatabaseSource", "MadeWorld", "SqlTask", "SqlWorld", "world_of"]

TRAIN_IDS = range(9_428)
"""The ids of the train split, as on AgentGym's server."""

DEV_IDS = range(9_428, 10_962)
"""The ids of the dev split."""


@dataclass(frozen=True)
class SqlTask:
    """A question about a database.

    Attributes:
        database: The name of the database, for `SqlWorld.source`.
        observation: The first observation.
        sql: A statement that answers the question.
    """

    database: str
    observation: str
    sql: str


@dataclass(frozen=True)
class DatabaseSource:
    """The source of a database: exactly one of the two is set.

    Attributes:
        script: SQL statements that create it.
        path: Its file.
    """

    script: str | None = None
    path: str | None = None


class SqlWorld(Protocol):
    """Databases and the tasks about them. All methods are thread-safe."""

    def ready(self, item_id: int) -> bool:
        """Return whether `task` returns at once for this id."""

    def task(self, item_id: int) -> SqlTask:
        """Return a task.

        Raises:
            LookupError: There is no such task.
        """

    def source(self, database: str) -> DatabaseSource:
        """Return the source of a task's database."""


class _Made:
    """A database with its questions."""

    def __init__(self, seed: int, place: int, count: int) -> None:
        database = (*TRAIN, *DEV)[place]
        self.name = database.name
        rows = rows_of(database, Draw("sqlgym", seed, database.name, "rows"))
        self.script = script_of(database, rows)
        self.description = database.description()
        with contextlib.closing(opened(self.script)) as connection:
            drawn = questions(database, rows, connection, Draw("sqlgym", seed, database.name, "questions"))
            self.questions: list[SqlQuestion] = list(itertools.islice(drawn, count))


class MadeWorld:
    """The world of a seed.

    A database is generated on the first request for one of its tasks, which takes some tenths of a second.

    Args:
        seed: The seed of the rows and the questions.
    """

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._made: dict[int, _Made] = {}
        self._lock = threading.Lock()

    def ready(self, item_id: int) -> bool:
        """Return whether the database of a task is ready, or there is no such task."""
        return not 0 <= item_id < DEV_IDS.stop or _place(item_id)[0] in self._made

    def task(self, item_id: int) -> SqlTask:
        """Return a task.

        Raises:
            LookupError: There is no such task.
        """
        if not 0 <= item_id < DEV_IDS.stop:
            raise LookupError(f"there is no task {item_id}: task ids are 0 to {DEV_IDS.stop - 1}")
        place, number = _place(item_id)
        made = self._database(place)
        question, sql = made.questions[number]
        return SqlTask(made.name, f"{made.description}\n\n{question}", sql)

    def source(self, database: str) -> DatabaseSource:
        """Return the source of a database: its script."""
        names = [each.name for each in (*TRAIN, *DEV)]
        return DatabaseSource(script=self._database(names.index(database)).script)

    def _database(self, place: int) -> _Made:
        with self._lock:
            if place not in self._made:
                self._made[place] = _Made(self._seed, place, _count(place))
            return self._made[place]


def _place(item_id: int) -> tuple[int, int]:
    """Return the index of a task's database, and the index of the question in it."""
    if item_id in TRAIN_IDS:
        return item_id % len(TRAIN), item_id // len(TRAIN)
    number = item_id - DEV_IDS.start
    return len(TRAIN) + number % len(DEV), number // len(DEV)


def _count(place: int) -> int:
    """Return the number of questions of a database."""
    ids, beside = (TRAIN_IDS, len(TRAIN)) if place < len(TRAIN) else (DEV_IDS, len(DEV))
    return -(-len(ids) // beside)


@lru_cache(maxsize=2)
def world_of(seed: int) -> MadeWorld:
    """Return the world of a seed; cached."""
    return MadeWorld(seed)
