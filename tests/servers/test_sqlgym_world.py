"""The databases and questions of the local SQLGym server, and those of a folder of BIRD."""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
import sqlite3

import pytest

from agentgym_gym.envs.sqlgym import SQLGYM, Query
from agentgym_gym.errors import BadOption
from agentgym_servers.sqlgym._bird import BirdWorld
from agentgym_servers.sqlgym._databases import DEV, TRAIN
from agentgym_servers.sqlgym._filling import opened
from agentgym_servers.sqlgym._questions import MOST_ROWS
from agentgym_servers.sqlgym._world import DEV_IDS, TRAIN_IDS, MadeWorld, world_of
from clock import cpu_seconds

DIGEST = "9c5821dd259510a2e974714d06a7b0437924903ab4017d136cfc0fb246674267"
SOME_DIGEST = "3e83da1350408c7c252ebc4f869479865e456fa39f0d807ea7723d1b95bea023"


SOME_IDS = [*TRAIN_IDS[::8], *DEV_IDS[::2]]
"""The tasks of two databases, university and museum, which are made in a moment."""


@pytest.fixture(scope="module")
def tasks():
    return {item_id: world_of(0).task(item_id) for item_id in SOME_IDS}


@pytest.fixture(scope="module")
def all_tasks():
    return {item_id: world_of(0).task(item_id) for item_id in (*TRAIN_IDS, *DEV_IDS)}


def digest(tasks):
    scripts = [world_of(0).source(name).script for name in dict.fromkeys(t.database for t in tasks.values())]
    told = "\n".join([*scripts, *(f"{task.observation}\n{task.sql}" for task in tasks.values())])
    return hashlib.sha256(told.encode()).hexdigest()


def test_the_world_is_the_same_everywhere(tasks):
    assert digest(tasks) == SOME_DIGEST


@pytest.mark.slow
def test_all_of_the_world_is_the_same_everywhere(all_tasks):
    assert digest(all_tasks) == DIGEST


def test_no_two_tasks_are_the_same(tasks):
    assert len({task.observation for task in tasks.values()}) == len(tasks) == 1_179 + 767


@pytest.mark.slow
def test_there_is_a_task_for_each_id_of_the_catalogue_and_none_twice(all_tasks):
    assert [*SQLGYM.splits["train"], *SQLGYM.splits["dev"]] == [*all_tasks]
    assert len({task.observation for task in all_tasks.values()}) == 10_962
    assert len({(task.database, task.sql) for task in all_tasks.values()}) == 10_962


def test_a_task_does_not_depend_on_what_was_asked_before_and_another_seed_has_others(tasks):
    ids = range(8_000, -1, -800)  # of one database, the last of them first
    assert [MadeWorld(0).task(ids[0])] == [tasks[ids[0]]]
    other = MadeWorld(1)
    assert [other.task(item_id) for item_id in ids] != [tasks[item_id] for item_id in ids]


@pytest.mark.parametrize("item_id", [-1, 10_962, 10**30])
def test_there_is_no_other_task(item_id):
    assert world_of(0).ready(item_id)
    with pytest.raises(LookupError, match=f"no task {item_id}:"):
        world_of(0).task(item_id)


def test_the_splits_are_about_different_databases(tasks):
    assert {tasks[item_id].database for item_id in SOME_IDS if item_id in TRAIN_IDS} == {"university"}
    assert {tasks[item_id].database for item_id in SOME_IDS if item_id in DEV_IDS} == {"museum"}
    names = [database.name for database in (*TRAIN, *DEV)]
    assert (len(TRAIN), len(DEV), len(set(names))) == (8, 2, 10)


def test_the_description_names_all_columns_and_the_keys():
    told = world_of(0).task(0).observation
    assert told.startswith("university contains tables such as departments, lecturers, courses, students,")
    assert (
        "Table courses has columns such as course_id, title, level, credits, lecturer_id. course_id is the "
        "primary key." in told
    )
    assert "The lecturer_id of courses is the foreign key of lecturer_id of lecturers." in told
    assert told.count("\n\n") == 1


@pytest.mark.parametrize("database", [TRAIN[0], DEV[0]], ids=lambda database: database.name)
def test_the_rows_are_as_the_schema_has_them(database):
    with contextlib.closing(opened(world_of(0).source(database.name).script)) as connection:
        assert connection.execute("PRAGMA foreign_key_check").fetchall() == []
        for table in database.tables:
            name = table.label.name if table.label else table.key
            count = connection.execute(f"SELECT count(*), count(DISTINCT {name}) FROM {table.name}")  # noqa: S608
            assert count.fetchone() == (table.rows, table.rows)


def results(tasks):
    """Yield tasks with the rows that answer them."""
    scripts = {name: world_of(0).source(name).script for name in {task.database for task in tasks}}
    with contextlib.ExitStack() as stack:
        databases = {
            name: stack.enter_context(contextlib.closing(opened(each))) for name, each in scripts.items()
        }
        for task in tasks:
            yield task, databases[task.database].execute(task.sql).fetchall()


@pytest.mark.slow
def test_every_answer_has_rows_that_cannot_be_had_without_looking(all_tasks):
    for task, rows in results(all_tasks.values()):
        assert 1 <= len(rows) <= MOST_ROWS, task
        assert any(value not in {None, 0, 1, 100} for row in rows for value in row), task


def test_every_answer_is_a_statement_that_an_agent_may_give(tasks):
    for task in list(tasks.values())[::23]:
        assert SQLGYM.grammar.parse(str(Query(task.sql))) == Query(task.sql)


def test_the_questions_are_of_many_kinds(tasks):
    kinds = {re.sub(r"'[^']*'|\d+|\w+_id|T\d\.\w+|FROM .*", "", task.sql) for task in tasks.values()}
    assert len(kinds) > 10
    joins = [task.sql.count(" JOIN ") for task in tasks.values()]
    assert sum(count > 0 for count in joins) > len(tasks) / 3
    assert sum(count > 1 for count in joins) > len(tasks) / 10


def test_a_database_is_made_in_a_moment():
    assert cpu_seconds(lambda: MadeWorld(7).task(3), 5.0) <= 5.0


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
    world = BirdWorld(tmp_path)
    assert world.task(0).observation == (
        "zoo contains tables such as Animal, Keeper. Table Animal has columns such as AnimalID, Full Name, "
        "KeeperID. AnimalID is the primary key. Table Keeper has columns such as KeeperID, Name. KeeperID is "
        "the primary key. The KeeperID of Animal is the foreign key of KeeperID of Keeper."
        "\n\nHow many animals are there?"
    )
    assert world.task(9_429).observation.endswith("\n\nAnd now?")
    for item_id in (1, 9_427, 9_430, -1):
        with pytest.raises(LookupError):
            world.task(item_id)


@pytest.mark.parametrize(
    ("questions", "said"),
    [
        ("{", "cannot read"),
        ("{}", "entry 0 lacks"),
        ("[[]]", "entry 0 lacks"),
        (json.dumps([QUESTION, {**QUESTION, "SQL": None}]), "entry 1 lacks"),
        (json.dumps([{**QUESTION, "db_id": "../zoo"}]), "no name of a folder"),
        (json.dumps([{**QUESTION, "db_id": "farm"}]), "there is no .*farm.sqlite"),
    ],
)
def test_a_wrong_folder_is_refused(tmp_path, questions, said):
    bird(tmp_path, "dev", [])
    (tmp_path / "dev.json").write_text(questions)
    with pytest.raises(BadOption, match=said):
        BirdWorld(tmp_path)


def test_an_empty_folder_is_refused(tmp_path):
    with pytest.raises(BadOption, match="holds no questions"):
        BirdWorld(tmp_path)


def test_a_database_that_is_none_fails_its_task_alone(tmp_path):
    bird(tmp_path, "dev", [QUESTION])
    (tmp_path / "dev_databases" / "zoo" / "zoo.sqlite").write_bytes(b"x" * 5_000)
    with pytest.raises(LookupError, match="cannot read"):
        BirdWorld(tmp_path).task(9_428)
