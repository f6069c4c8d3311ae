"""What a statement can and cannot do on the local SQLGym server, and which results are right."""

from __future__ import annotations

import contextlib
import re
import sqlite3

import pytest

from agentgym_gym.errors import JudgeFailed
from bird_folder import FIRST_TASK, write_bird
from local_game import LocalGame, solution

ENDLESS = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT count(*) FROM c"


@pytest.fixture(scope="module")
def game():
    with LocalGame("SQLGym") as game:
        yield game


def state_of(game, sql):
    """Return the result of a wrong statement on the database university."""
    outcome = game.play(0, [sql])
    assert (outcome.reward, outcome.done) == (0, True)
    assert len(outcome.observation) <= 103
    return outcome.observation


def rewards(folder, reference, *statements):
    """Return what each statement pays where a reference is right; the table animal has the ids 4 and 7."""
    with LocalGame("SQLGym", data=write_bird(folder, reference)) as game:
        return [game.play(FIRST_TASK, [sql]).reward for sql in statements]


def test_a_result_is_compared_as_a_set_of_rows(tmp_path):
    ids = "SELECT id FROM animal WHERE id < 9"
    same = (
        "SELECT id FROM animal WHERE id <= 7 ORDER BY 1 DESC",
        f"{ids} UNION ALL {ids}",
        "VALUES (7.0), (4)",
    )
    other = (
        "SELECT id FROM animal WHERE id < 7",
        "SELECT id, 1 FROM animal",
        f"{ids} UNION SELECT 5",
        "SELECT 4, 7",
    )
    assert rewards(tmp_path, ids, *same, *other) == [1] * len(same) + [0] * len(other)


def test_a_result_is_shown_cut(game):
    assert state_of(game, "SELECT count(*) FROM students") == "[(90,)]"
    state = state_of(game, "SELECT name FROM students")
    assert (len(state), state[-3:]) == (103, "...")
    assert state_of(game, "select x'ff00', 1e999, null") == "[(b'\\xff\\x00', inf, None)]"  # as recorded


def test_an_empty_statement_is_never_right(tmp_path):
    nothing = ("", " ", ";", "-- nothing", "/* nothing")
    assert rewards(tmp_path, "SELECT 1 WHERE 0", *nothing, "SELECT 2 WHERE 0") == [0] * len(nothing) + [1]


@pytest.mark.parametrize(
    ("reference", "reason"),
    [
        ("SELECT readfile('/etc/passwd')", "no such function: readfile"),
        ("DELETE FROM animal", "not authorized"),
    ],
)
def test_a_task_whose_reference_is_refused_does_not_start(tmp_path, reference, reason):
    """More of them are in test_judge, and statements that exceed a limit in test_sqlgym_worker."""
    folder = write_bird(tmp_path, reference, "SELECT 1")
    with LocalGame("SQLGym", data=folder) as game:
        with pytest.raises(JudgeFailed, match=reason):
            game.reset(FIRST_TASK)
        assert game.play(FIRST_TASK + 1, ["SELECT 1"]).reward == 1


ROWS = [
    # rows, others, and whether they are equal
    ("(1, 'a'), (2, 'b')", "(2.0, 'b'), (1, 'a'), (1, 'a')", True),
    ("(-0.0)", "(0)", True),
    ("(1e999)", "(2e999)", True),
    ("(9007199254740993)", "(9007199254740992.0)", False),
    ("(1)", "('1')", False),
    ("('a')", "(x'61')", False),
    ("(NULL)", "('None')", False),
    ("('a', 'b')", "('a'', ''b', NULL)", False),
    ("(char(10)), ('x')", "(char(10) || 'x')", False),
]


def test_rows_are_equal_as_pythons_sets_of_them_are(tmp_path):
    folder = write_bird(tmp_path, *(f"VALUES {rows}" for rows, _, _ in ROWS))
    with (
        LocalGame("SQLGym", data=folder) as game,
        contextlib.closing(sqlite3.connect(":memory:")) as database,
    ):
        for task, (rows, others, equal) in enumerate(ROWS, start=FIRST_TASK):
            sets = [set(database.execute(f"VALUES {each}")) for each in (rows, others)]
            assert (sets[0] == sets[1]) is equal
            assert game.play(task, [f"VALUES {others}"]).reward == float(equal), rows


@pytest.mark.parametrize(
    ("sql", "pattern"),
    [
        *(
            (sql, "not authorized")
            for sql in (
                "DROP TABLE students",
                "INSERT INTO students VALUES (1)",
                "UPDATE students SET name = 'x'",
                "DELETE FROM students",
                "CREATE TEMP TABLE t (a)",
                "CREATE VIEW v AS SELECT 1",
                "PRAGMA writable_schema = 1",
                "PRAGMA query_only = 0",
                "PRAGMA hard_heap_limit = 0",
                "SELECT * FROM pragma_table_info('students')",
                "SELECT * FROM pragma_database_list",
                "ATTACH '/tmp/agentgym-no-such.db' AS x",
                "DETACH main",
                "ANALYZE",
                "BEGIN",
                "SAVEPOINT a",
            )
        ),
        ("VACUUM INTO '/tmp/agentgym-no-such.db'", "authorization denied"),
        ("SELECT load_extension('x')", "not authorized to use function: load_extension"),
        ("SELECT randomblob(9)", "not authorized to use function: randomblob"),
        ("SELECT fts3_tokenizer('simple')", "not authorized to use function|no such function"),
        ("SELECT readfile('/etc/passwd')", "no such function: readfile"),
        ("SELECT 1; SELECT 2", "You can only execute one statement at a time."),
        ("SELECT name FROM zoo", "no such table: zoo"),
        ("SELECT '\0'", "null character|embedded null"),
        ("SELECT '\ud800'", "can't encode|wrong type"),
        ("SELECT cast(x'ff' AS text)", "decode"),
        ("SELECT " + "(" * 5_000 + "1" + ")" * 5_000, "parser stack overflow|too deep|too large"),
        ("SELECT 1" + "+1" * 100_000, "too large"),
        ("x" * 1_000_000, 'near "x'),
    ],
)
def test_refused_statements_get_an_answer(game, sql, pattern):
    assert re.search(pattern, state_of(game, sql))
    assert game.play(0, solution("SQLGym", 0)).reward == 1


@pytest.mark.parametrize(
    "sql",
    [
        ENDLESS,
        *(
            pytest.param(sql, marks=pytest.mark.slow)
            for sql in (
                "SELECT group_concat(a.name) FROM students a, students b, students c, students d",
                "SELECT a.name FROM students a, students b, students c, students d",
                "SELECT 1 FROM students a, students b, students c ORDER BY a.name || printf('%900d', 1)",
                "SELECT replace(printf('%.*c', 300000, 'a'), 'a', printf('%.*c', 300, 'a'))",
            )
        ),
    ],
)
def test_endless_or_large_statements_are_interrupted(game, sql):
    cut = {"interrupted", "the result is too large", "out of memory", "string or blob too big"}
    assert state_of(game, sql) in cut
    assert game.play(0, solution("SQLGym", 0)).reward == 1
