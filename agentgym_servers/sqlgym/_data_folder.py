"""A user's copy of BIRD's databases and questions (Li et al., 2023, arXiv:2305.03111)."""

from __future__ import annotations

import contextlib
import sqlite3
import threading
from pathlib import Path
from typing import Any

from agentgym_gym.errors import BadOption
from agentgym_servers._frame.data_files import read_user_json
from agentgym_servers.sqlgym._world import DEV_IDS, TRAIN_IDS, DatabaseSource, SqlTask

__all__ = ["BirdWorld"]

_MAX_FILE_BYTES = 200_000_000  # of a file with questions; BIRD's have a few million bytes


class BirdWorld:
    """The world of a BIRD folder.

    The folder has the split ``train``, ``dev`` or both. The files of a split are in the folder itself or in a
    subfolder named after the split. For ``train`` they are ``train.json``, a list of objects with ``db_id``,
    ``question`` and ``SQL``, and ``train_databases/DB/DB.sqlite``. The ids of the dev tasks follow the ids of
    BIRD's train split, as on AgentGym's server.

    Args:
        folder: The folder.

    Raises:
        BadOption: The folder has neither split, or an invalid file.
    """

    def __init__(self, folder: Path) -> None:
        self._questions: dict[int, dict[str, Any]] = {}
        self._files: dict[str, Path] = {}
        self._descriptions: dict[str, str] = {}
        self._lock = threading.Lock()
        for split, ids in (("train", TRAIN_IDS), ("dev", DEV_IDS)):
            self._load(folder, split, ids)
        if not self._questions:
            raise BadOption(f"no questions in {folder}: BIRD has them in train.json and dev.json")

    def _load(self, folder: Path, split: str, ids: range) -> None:
        places = [folder / split, folder]
        place = next((each for each in places if (each / f"{split}.json").is_file()), None)
        if place is None:
            return
        entries = _questions(place / f"{split}.json")
        if len(entries) > len(ids):
            raise BadOption(
                f"{place / split}.json has {len(entries)} questions; there are only {len(ids)} ids"
            )
        for item_id, question in zip(ids, entries, strict=False):
            name = question["db_id"]
            path = place / f"{split}_databases" / name / f"{name}.sqlite"
            if not path.is_file():
                raise BadOption(f"missing {path}, which {split}.json refers to")
            self._files[f"{split}/{name}"] = path.resolve()
            self._questions[item_id] = {**question, "database": f"{split}/{name}"}

    def ready(self, item_id: int) -> bool:
        """Return whether the description of a task's database is ready, or there is no such task."""
        question = self._questions.get(item_id)
        return question is None or question["database"] in self._descriptions

    def task(self, item_id: int) -> SqlTask:
        """Return a task.

        Raises:
            LookupError: There is no such task, or its database cannot be read.
        """
        question = self._questions.get(item_id)
        if question is None:
            raise LookupError(f"there is no task {item_id} in these files")
        database = question["database"]
        observation = f"{self._described(database, question['db_id'])}\n\n{question['question']}"
        return SqlTask(database, observation, question["SQL"])

    def source(self, database: str) -> DatabaseSource:
        """Return the file of a database, to be opened read-only."""
        return DatabaseSource(path=_uri(self._files[database]))

    def _described(self, database: str, name: str) -> str:
        with self._lock:
            if database not in self._descriptions:
                try:
                    self._descriptions[database] = _description(name, self._files[database])
                except sqlite3.Error as error:
                    raise LookupError(f"cannot read {self._files[database]}: {error}") from error
            return self._descriptions[database]


def _uri(path: Path) -> str:
    return f"{path.as_uri()}?mode=ro"


def _questions(path: Path) -> list[dict[str, Any]]:
    """Return the questions of a file.

    Raises:
        BadOption: The file is not a list of objects with the required fields.
    """
    if path.stat().st_size > _MAX_FILE_BYTES:
        raise BadOption(f"{path} is larger than {_MAX_FILE_BYTES} bytes")
    entries = read_user_json(path)
    for number, question in enumerate(entries if isinstance(entries, list) else [None]):
        texts = (
            [question.get(key) for key in ("db_id", "question", "SQL")] if isinstance(question, dict) else []
        )
        if not texts or not all(isinstance(text, str) for text in texts):
            raise BadOption(f"{path}: entry {number} must have text fields db_id, question and SQL")
        if Path(question["db_id"]).name != question["db_id"]:
            raise BadOption(f"{path}: entry {number}: db_id is not a valid folder name")
    return list(entries)


def _description(name: str, path: Path) -> str:
    """Return the description of a database that the agent reads, in the format of AgentGym's server."""
    with contextlib.closing(sqlite3.connect(_uri(path), uri=True)) as connection:
        listed = connection.execute(
            "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite~_%' ESCAPE '~'"
        )
        tables = [table for (table,) in listed]
        sentences = [f"{name} contains tables such as {', '.join(tables)}."]
        links = []
        for table in tables:
            columns = connection.execute("SELECT name, pk FROM pragma_table_info(?)", [table]).fetchall()
            sentences.append(
                f"Table {table} has columns such as {', '.join(column for column, _ in columns)}."
            )
            keys = [column for column, place in sorted(columns, key=lambda each: each[1]) if place]
            if keys:
                sentences.append(f"{', '.join(keys)} is the primary key.")
            links += [
                f"The {column} of {table} is the foreign key of {other or 'the primary key'} of {parent}."
                for column, parent, other in connection.execute(
                    'SELECT "from", "table", "to" FROM pragma_foreign_key_list(?)', [table]
                )
            ]
        return " ".join(sentences + links)
