"""A folder of BIRD with one database, zoo, and questions of its split dev."""

from __future__ import annotations

import contextlib
import json
import sqlite3
from pathlib import Path

__all__ = ["DATABASE", "FIRST_TASK", "write_bird"]

FIRST_TASK = 9_428
"""The id of the first question of the split dev."""

DATABASE = Path("dev_databases", "zoo", "zoo.sqlite")
"""The file of the database in the folder; its table animal has the ids 4 and 7."""


def write_bird(folder: Path, *references: str) -> Path:
    """Write a folder with a question for each reference statement, and return it."""
    file = folder / DATABASE
    file.parent.mkdir(parents=True)
    with contextlib.closing(sqlite3.connect(file)) as connection:
        connection.executescript("CREATE TABLE animal (id INTEGER); INSERT INTO animal VALUES (4), (7);")
    questions = [{"db_id": "zoo", "question": "How many?", "evidence": "", "SQL": sql} for sql in references]
    (folder / "dev.json").write_text(json.dumps(questions), "utf-8")
    return folder
