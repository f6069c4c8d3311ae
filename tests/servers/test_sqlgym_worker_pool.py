"""What a statement can and cannot do on the local SQLGym server."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import resource
import signal
import sqlite3
import subprocess
import sys

import pytest

from agentgym_servers.sqlgym import _worker as worker
from agentgym_servers.sqlgym._worker_pool import (
    CUT,
    MADE_BOUNDS,
    Bounds,
    NoReference,
    NotExecuted,
    WorkerPool,
    _Child,
)
from agentgym_servers.sqlgym._world import DEV_IDS, TRAIN_IDS, SqlTask, world_of

COUNT = SqlTask("university", "", "SELECT count(*) FROM students")
ENDLESS = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT count(*) FROM c"
STUCK = "SELECT instr(printf('%.*c', 1000000, 'a'), printf('%.*c', 500000, 'a') || 'b')"
"""Spends minutes within one function, which SQLite cannot interrupt."""


@pytest.fixture(scope="module")
def judges():
    judges = WorkerPool(world_of(0), MADE_BOUNDS, count=2)
    yield judges
    judges.close()


def judge(judges, sql, task=COUNT, env=0):
    return asyncio.run(judges.judge(task, sql, env))


def test_a_result_is_compared_as_a_set_of_rows(judges):
    names = SqlTask("university", "", "SELECT name FROM students WHERE student_id < 4")
    assert judge(judges, "SELECT name FROM students WHERE student_id <= 3 ORDER BY 1 DESC", names).right
    assert judge(judges, f"{names.sql} UNION ALL {names.sql}", names).right
    assert not judge(judges, "SELECT name FROM students WHERE student_id < 3", names).right
    assert not judge(judges, "SELECT name, 1 FROM students WHERE student_id < 4", names).right
    assert judge(judges, "SELECT 90.0") == judge(judges, "VALUES (90.0)")
    assert judge(judges, "SELECT 90.0").right  # 90 and 90.0 are equal, as on AgentGym's server


def test_a_result_is_shown_cut(judges):
    assert judge(judges, COUNT.sql).state == "[(90,)]"
    state = judge(judges, "SELECT name FROM students").state
    assert (len(state), state[-3:]) == (103, "...")
    assert judge(judges, "select x'ff00', 1e999, null").state == "[(b'\\xff\\x00', inf, None)]"  # as recorded


@pytest.mark.parametrize("sql", ["", " ", ";", "-- nothing", "/* nothing"])
def test_a_statement_that_says_nothing_is_never_right(judges, sql):
    nothing = SqlTask("university", "", "SELECT 1 WHERE 0")
    said = judge(judges, sql, nothing)
    assert (said.state, said.right) == ("[]", False)
    assert judge(judges, "SELECT 2 WHERE 0", nothing).right


@pytest.mark.parametrize(
    ("reference", "reason"),
    [
        ("SELECT * FROM zoo", "fails on the database university: no such table: zoo"),
        ("SELECT zoo FROM students", "no such column"),
        ("SELECT FROM WHERE", "syntax error"),
        ("SELECT readfile('/etc/passwd')", "no such function: readfile"),
        ("DELETE FROM students", "not authorized"),
        (" -- nothing", "is empty"),
        ("SELECT a.name FROM students a, students b, students c", "exceeds a limit .the result is too large"),
        (ENDLESS, "exceeds a limit .interrupted"),
        pytest.param(STUCK, "exceeds a limit .interrupted", marks=pytest.mark.slow),
    ],
)
def test_a_task_whose_reference_fails_is_not_judged(judges, reference, reason):
    task = SqlTask("university", "", reference)
    for sql in ("SELECT 1", "SELECT zoo", "", reference):
        with pytest.raises(NoReference, match=reason):
            judge(judges, sql, task)
    assert judge(judges, COUNT.sql).right


def test_a_reference_whose_rows_cannot_change_is_executed_once(judges, monkeypatch):
    executed = []
    execute = _Child.execute
    monkeypatch.setattr(
        _Child, "execute", lambda self, *args: executed.append(args[1]) or execute(self, *args)
    )
    fixed, now = (
        SqlTask("university", "", sql)
        for sql in ("SELECT 90.0", "SELECT 90 + strftime('%Y', 'now') - strftime('%Y', CURRENT_TIMESTAMP)")
    )
    for task in (fixed, now):
        for _ in range(3):
            assert judge(judges, COUNT.sql, task).right
    assert (executed.count(fixed.sql), executed.count(now.sql)) == (1, 3)


@pytest.mark.parametrize("function", ["CURRENT_DATE", "random()", "date('now')", "julianday('now')"])
def test_a_function_of_the_clock_or_chance_makes_rows_volatile(function):
    runner = worker.StatementRunner(64_000_000, 0)
    request = {"database": "a", "open": {"script": "", "path": None}, "steps": 10**6, "seconds": 5.0}
    runner.open(request)
    asked = [f"SELECT {function}", "SELECT 1", f"SELECT {function}"]
    assert [runner.answer({**request, "sql": sql})["volatile"] for sql in asked] == [True, False, True]


@pytest.mark.parametrize(
    ("rows", "others", "equal"),
    [
        ("(1, 'a'), (2, 'b')", "(2.0, 'b'), (1, 'a'), (1, 'a')", True),
        ("(-0.0)", "(0)", True),
        ("(1e999)", "(2e999)", True),
        ("(9007199254740993)", "(9007199254740992.0)", False),
        ("(1)", "('1')", False),
        ("('a')", "(x'61')", False),
        ("(NULL)", "('None')", False),
        ("('a', 'b')", "('a'', ''b', NULL)", False),
        ("(char(10)), ('x')", "(char(10) || 'x')", False),
    ],
)
def test_rows_are_equal_as_pythons_sets_of_them_are(judges, rows, others, equal):
    with contextlib.closing(sqlite3.connect(":memory:")) as connection:
        sets = [set(connection.execute(f"VALUES {each}")) for each in (rows, others)]
    assert (sets[0] == sets[1]) is equal
    assert judge(judges, f"VALUES {others}", SqlTask("university", "", f"VALUES {rows}")).right is equal


@pytest.mark.parametrize(
    ("sql", "said"),
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
def test_what_is_refused_is_answered(judges, sql, said):
    answer = judge(judges, sql)
    assert not answer.right
    assert re.search(said, answer.state)
    assert len(answer.state) <= 103
    assert judge(judges, COUNT.sql).right


@pytest.mark.parametrize(
    "sql",
    [
        ENDLESS,
        "SELECT group_concat(a.name) FROM students a, students b, students c, students d",
        "SELECT a.name FROM students a, students b, students c, students d",
        "SELECT 1 FROM students a, students b, students c ORDER BY a.name || c.name || printf('%900d', 1)",
        "SELECT replace(printf('%.*c', 300000, 'a'), 'a', printf('%.*c', 300, 'a'))",
    ],
)
def test_what_never_ends_or_eats_memory_is_cut_and_the_process_goes_on(judges, sql):
    judge(judges, COUNT.sql)
    before = judges.process_ids
    answer = judge(judges, sql)
    assert answer.state in {CUT, "the result is too large", "out of memory", "string or blob too big"}
    assert not answer.right
    assert judge(judges, COUNT.sql).right
    assert before <= judges.process_ids


def test_others_are_judged_while_a_statement_is_not_cut_yet():
    slow = WorkerPool(world_of(0), Bounds(10**12, 0.5, 64_000_000, 512_000_000), count=2)

    async def play():
        hog = asyncio.ensure_future(slow.judge(COUNT, ENDLESS, "hog"))
        others = [await slow.judge(COUNT, COUNT.sql, "other") for _ in range(20)]
        return hog.done(), [other.right for other in others], await hog

    finished, others, cut = asyncio.run(play())
    slow.close()
    assert not finished
    assert others == [True] * 20
    assert (cut.state, cut.right) == (CUT, False)


@pytest.mark.parametrize("reference", [COUNT.sql, ENDLESS])
def test_a_process_that_another_program_kills_fails_its_own_statement_alone(reference):
    """Neither an agent's statement nor a reference is then known to exceed a limit."""
    judges = WorkerPool(world_of(0), Bounds(10**12, 60.0, 64_000_000, 512_000_000), count=2)
    task = SqlTask(COUNT.database, "", reference)

    async def play():
        for _ in range(4):
            await judges.judge(COUNT, COUNT.sql, "other")
        hog = asyncio.ensure_future(judges.judge(task, ENDLESS, "hog"))
        await asyncio.sleep(0.3)
        for pid in judges.process_ids:
            os.kill(pid, signal.SIGKILL)
        with pytest.raises(NotExecuted, match="killed by another program"):
            await asyncio.wait_for(hog, 30)
        return await judges.judge(COUNT, COUNT.sql, "other")

    after = asyncio.run(play())
    judges.close()
    assert after.right


@pytest.mark.slow
def test_what_sqlite_cannot_end_is_ended_with_its_process():
    """By the system's limit of processor time, or by the parent."""
    judges = WorkerPool(world_of(0), MADE_BOUNDS, count=1)
    try:
        assert judge(judges, COUNT.sql).right
        before = judges.process_ids
        assert judge(judges, STUCK).state == CUT
        assert judge(judges, COUNT.sql).right
        assert (len(before), len(judges.process_ids), before & judges.process_ids) == (1, 1, set())
    finally:
        judges.close()


def test_an_unforeseen_error_is_raised_to_its_caller_and_harms_nobody_else(judges):
    missing = SqlTask("no such database", "", "SELECT 1")

    async def play():
        with pytest.raises(NotExecuted, match="no such database"):
            await asyncio.wait_for(judges.judge(missing, "SELECT 1", 0), 60)
        return [await judges.judge(COUNT, COUNT.sql, env) for env in range(4)]

    assert [judged.right for judged in asyncio.run(play())] == [True] * 4


def test_closing_ends_the_processes():
    judges = WorkerPool(world_of(0), MADE_BOUNDS, count=1)
    judge(judges, COUNT.sql)
    (pid,) = judges.process_ids
    judges.close()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_a_worker_ends_when_its_parent_is_gone_and_its_memory_is_bounded():
    command = [sys.executable, "-I", worker.__file__, "512000000", "64000000", "0"]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    asked = {"database": "a", "open": {"script": "CREATE TABLE b (c);", "path": None}, "sql": "SELECT 1"}
    process.stdin.write(json.dumps({**asked, "steps": 10**6, "seconds": 5}).encode())
    process.stdin.write(b"\n")
    process.stdin.flush()
    with process.stdout:
        assert process.stdout.readline() == worker.BEGUN
        response = json.loads(process.stdout.readline())
        assert (response["state"], response["failure"], response["volatile"]) == ("[(1,)]", "", False)
        assert resource.prlimit(process.pid, resource.RLIMIT_AS) == (512_000_000, 512_000_000)
        process.stdin.close()
        assert process.wait(30) == 0


@pytest.fixture(params=["default", "ignored", "blocked"])
def profiling_signal(request):
    """What this process, as the parent of a worker, does with the signal at the limit of processor time."""
    handler = signal.SIG_IGN if request.param == "ignored" else signal.SIG_DFL
    before = signal.signal(signal.SIGPROF, handler)
    blocked = {signal.SIGPROF} if request.param == "blocked" else set()
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, blocked)
    yield
    signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    signal.signal(signal.SIGPROF, before)


@pytest.mark.slow
@pytest.mark.usefixtures("profiling_signal")
@pytest.mark.parametrize("seconds", [0.2, 0.6])
def test_the_system_ends_a_worker_at_its_limit_of_processor_time(seconds):
    command = [sys.executable, "-I", worker.__file__, "512000000", "64000000", "0"]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    request = {"database": "a", "open": {"script": "CREATE TABLE b (c);", "path": None}, "sql": STUCK}
    process.stdin.write(json.dumps({**request, "steps": 10**9, "seconds": seconds}).encode())
    process.stdin.close()
    with process.stdout:
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        assert process.returncode == -signal.SIGPROF
        used = usage.ru_utime + usage.ru_stime
        # The timer of the system and its accounting differ by some milliseconds; the start is included.
        assert 0.9 * seconds < used < seconds + 1
        assert process.stdout.read() == worker.BEGUN


def right_answers(judges, ids):
    async def play():
        asked = [judges.judge(task, task.sql, task.observation) for task in map(world_of(0).task, ids)]
        return [(item_id, each) for item_id, each in zip(ids, await asyncio.gather(*asked), strict=True)]

    return [item_id for item_id, each in asyncio.run(play()) if each.right]


def test_the_solutions_of_some_tasks_are_right(judges):
    ids = [*TRAIN_IDS[::80], *DEV_IDS[::20]]  # of one database of each split
    assert right_answers(judges, ids) == ids


@pytest.mark.slow
def test_the_solutions_of_all_tasks_are_right(judges):
    ids = [*TRAIN_IDS, *DEV_IDS]
    assert right_answers(judges, ids) == ids
