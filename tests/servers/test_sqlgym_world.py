"""The databases and questions of the local SQLGym server, and of a folder of BIRD."""

from __future__ import annotations

import ast
import contextlib
import json
import re
import sqlite3

import pytest

from agentgym_gym import errors
from agentgym_gym.envs.sqlgym import SQLGYM
from agentgym_gym.local_servers import server_kind
from local_game import LocalGame, solution

TRAIN, DEV = SQLGYM.split("train"), SQLGYM.split("dev")
SOME = [*TRAIN[::8], *DEV[::2]]
"""The tasks of two databases, university and museum, which are made in a moment."""


@pytest.fixture(scope="module")
def game():
    with LocalGame("SQLGym") as game:
        yield game


def database_of(game, task):
    return game.reset(task).observation.partition(" ")[0]


def test_a_task_does_not_depend_on_earlier_requests(game, local_url):
    tasks = range(0, 8_001, 800)  # of one database
    with LocalGame("SQLGym", url=local_url("sqlgym")) as other:
        others = {task: other.reset(task) for task in reversed(tasks)}
    assert {task: game.reset(task) for task in tasks} == others


@pytest.mark.slow
def test_the_splits_are_about_different_databases(game):
    train = {database_of(game, task) for task in TRAIN[:16]}
    dev = {database_of(game, task) for task in DEV[:4]}
    assert (len(train), len(dev), len(train | dev)) == (8, 2, 10)
    assert {database_of(game, task) for task in SOME[::50]} == {"university", "museum"}


def test_the_description_names_all_columns_and_the_keys(game):
    text = game.reset(0).observation
    assert text.startswith("university contains tables such as departments, lecturers, courses, students,")
    assert (
        "Table courses has columns such as course_id, title, level, credits, lecturer_id. course_id is the "
        "primary key." in text
    )
    assert "The lecturer_id of courses is the foreign key of lecturer_id of lecturers." in text
    assert text.count("\n\n") == 1


@pytest.mark.parametrize("task", [TRAIN[0], DEV[0]])
def test_the_rows_are_as_the_description_has_them(game, task):
    text = game.reset(task).observation
    tables = re.findall(r"Table (\w+) has columns such as [^.]+\. (\w+) is the primary key\.", text)
    links = re.findall(r"The (\w+) of (\w+) is the foreign key of (\w+) of (\w+)\.", text)
    assert len(tables) == text.count("Table ") >= 4
    assert len(links) >= 3
    for table, key in tables:
        state = game.step(f"SELECT count(*), count(DISTINCT {key}) FROM {table}").observation  # noqa: S608
        ((rows, different),) = ast.literal_eval(state)
        assert rows == different > 0
    for column, table, key, other in links:
        orphans = f"SELECT count(*) FROM {table} WHERE {column} NOT IN (SELECT {key} FROM {other})"  # noqa: S608
        assert game.step(orphans).observation == "[(0,)]"


@pytest.mark.parametrize(
    "tasks",
    [
        SOME[::97],
        pytest.param(SOME[::7], marks=pytest.mark.slow),
        pytest.param(SOME, marks=pytest.mark.exhaustive),
    ],
    ids=len,
)
def test_every_answer_has_rows_that_cannot_be_guessed_without_a_query(game, tasks):
    for task in tasks:
        _, outcome = game.win(task)
        with contextlib.suppress(SyntaxError):  # of one that is cut, there is more to see
            rows = ast.literal_eval(outcome.observation)
            assert any(value not in {None, 0, 1, 100} for row in rows for value in row), task


def test_the_questions_are_of_many_kinds():
    statements = [solution("SQLGym", task)[0].sql for task in SOME]
    assert len({re.sub(r"'[^']*'|\d+|\w+_id|T\d\.\w+|FROM .*", "", sql) for sql in statements}) > 10
    joins = [sql.count(" JOIN ") for sql in statements]
    assert sum(count > 0 for count in joins) > len(SOME) / 3
    assert sum(count > 1 for count in joins) > len(SOME) / 10


# --- a folder of BIRD ---


def bird(folder, split: str, questions: list[dict]):
    """Write a split of a folder in BIRD's schema, with one small database."""
    databases = folder / f"{split}_databases" / "zoo"
    databases.mkdir(parents=True)
    with contextlib.closing(sqlite3.connect(databases / "zoo.sqlite")) as connection:
        connection.executescript(
            'CREATE TABLE Animal (AnimalID INTEGER PRIMARY KEY, "Full Name" TEXT, KeeperID INTEGER,'
            " FOREIGN KEY (KeeperID) REFERENCES Keeper (KeeperID));"
            "CREATE TABLE Keeper (KeeperID INTEGER PRIMARY KEY, Name TEXT);"
            "INSERT INTO Keeper VALUES (1, 'Ada'); INSERT INTO Animal VALUES (1, 'Leo', 1), (2, 'Mia', 1);"
        )
    (folder / f"{split}.json").write_text(json.dumps(questions))
    return folder


QUESTION = {
    "db_id": "zoo",
    "question": "How many animals are there?",
    "evidence": "",
    "SQL": "SELECT COUNT(*) FROM Animal",
}


def test_a_folder_of_bird_is_loaded(tmp_path):
    bird(tmp_path, "train", [QUESTION])
    bird(tmp_path / "dev", "dev", [QUESTION, {**QUESTION, "difficulty": "simple", "question": "And now?"}])
    with LocalGame("SQLGym", data=tmp_path) as game:
        assert game.reset(0).observation == (
            "zoo contains tables such as Animal, Keeper. Table Animal has columns such as AnimalID, Full "
            "Name, KeeperID. AnimalID is the primary key. Table Keeper has columns such as KeeperID, Name. "
            "KeeperID is the primary key. The KeeperID of Animal is the foreign key of KeeperID of Keeper."
            "\n\nHow many animals are there?"
        )
        assert game.reset(9_429).observation.endswith("\n\nAnd now?")
        for item_id in (1, 9_427, 9_430, -1):
            with pytest.raises(errors.ServerError):
                game.reset(item_id)


@pytest.mark.parametrize(
    ("questions", "reason"),
    [
        ("{", "cannot read"),
        ("{}", "entry 0 must"),
        ("[[]]", "entry 0 must"),
        (json.dumps([QUESTION, {**QUESTION, "SQL": None}]), "entry 1 must"),
        (json.dumps([{**QUESTION, "db_id": "../zoo"}]), "not a valid folder name"),
        (json.dumps([{**QUESTION, "db_id": "farm"}]), "missing .*farm.sqlite"),
    ],
)
def test_a_wrong_folder_is_refused(tmp_path, questions, reason):
    bird(tmp_path, "dev", [])
    (tmp_path / "dev.json").write_text(questions)
    with pytest.raises(errors.BadOption, match=reason):
        server_kind("sqlgym").app(data=tmp_path)


def test_an_empty_folder_is_refused(tmp_path):
    with pytest.raises(errors.BadOption, match="no questions in "):
        server_kind("sqlgym").app(data=tmp_path)


def test_an_invalid_database_fails_only_its_own_task(tmp_path):
    bird(tmp_path, "dev", [QUESTION, {**QUESTION, "db_id": "farm"}])
    databases = tmp_path / "dev_databases"
    (databases / "farm").mkdir()
    (databases / "farm" / "farm.sqlite").write_bytes((databases / "zoo" / "zoo.sqlite").read_bytes())
    (databases / "zoo" / "zoo.sqlite").write_bytes(b"x" * 5_000)
    with LocalGame("SQLGym", data=tmp_path) as game:
        with pytest.raises(errors.ServerError):
            game.reset(9_428)
        assert game.reset(9_429).observation.startswith("farm contains tables such as Animal")
