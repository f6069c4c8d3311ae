"""The processes that execute statements on the local SQLGym server: their limits and ends."""

from __future__ import annotations

import asyncio
import json
import os
import resource
import signal
import subprocess
import sys

import pytest

from agentgym_servers.sqlgym import _statement_runner as worker
from agentgym_servers.sqlgym._judge import NoReference, SqlWorkerPool
from agentgym_servers.sqlgym._statement_process import MADE_BOUNDS, Bounds, NotExecuted, StatementProcess
from agentgym_servers.sqlgym._world import SqlTask, world_of
from clock import wait_until
from process_tree import processor_ticks

COUNT = SqlTask("university", "", "SELECT count(*) FROM students")
ENDLESS = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT count(*) FROM c"
STUCK = "SELECT instr(printf('%.*c', 1000000, 'a'), printf('%.*c', 500000, 'a') || 'b')"
"""Spends minutes within one function, which SQLite cannot interrupt."""


@pytest.fixture(scope="module")
def judges():
    judges = SqlWorkerPool(world_of(0), MADE_BOUNDS, count=2)
    yield judges
    judges.close()


def judge(judges, sql, task=COUNT, env=0):
    return asyncio.run(judges.judge(task, sql, env))


@pytest.mark.slow
@pytest.mark.parametrize("reference", [ENDLESS, STUCK])
def test_a_task_whose_reference_exceeds_a_limit_is_not_judged(judges, reference):
    task = SqlTask("university", "", reference)
    for sql in ("SELECT 1", reference):
        with pytest.raises(NoReference, match=r"exceeds a limit .interrupted"):
            judge(judges, sql, task)
    assert judge(judges, COUNT.sql).right


def test_a_reference_whose_rows_cannot_change_is_executed_once(judges, monkeypatch):
    executed = []
    execute = StatementProcess.execute
    monkeypatch.setattr(
        StatementProcess, "execute", lambda self, *args: executed.append(args[1]) or execute(self, *args)
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


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize("reference", [COUNT.sql, pytest.param(ENDLESS, marks=pytest.mark.slow)])
def test_a_process_that_another_program_kills_fails_only_its_own_statement(reference):
    """Neither an agent's statement nor a reference is then known to exceed a limit."""
    judges = SqlWorkerPool(world_of(0), Bounds(10**12, 60.0, 64_000_000, 512_000_000), count=2)
    task = SqlTask(COUNT.database, "", reference)

    async def play():
        for _ in range(4):
            await judges.judge(COUNT, COUNT.sql, "other")
        idle = processor_ticks(judges.process_ids)
        hog = asyncio.ensure_future(judges.judge(task, ENDLESS, "hog"))
        await asyncio.to_thread(wait_until, lambda: processor_ticks(judges.process_ids) > idle + 10)
        for pid in judges.process_ids:
            os.kill(pid, signal.SIGKILL)
        with pytest.raises(NotExecuted, match="killed by another program"):
            await asyncio.wait_for(hog, 30)
        return await judges.judge(COUNT, COUNT.sql, "other")

    after = asyncio.run(play())
    judges.close()
    assert after.right


def test_an_unexpected_error_is_raised_only_to_its_caller(judges):
    missing = SqlTask("no such database", "", "SELECT 1")

    async def play():
        with pytest.raises(NotExecuted, match="no such database"):
            await asyncio.wait_for(judges.judge(missing, "SELECT 1", 0), 60)
        return [await judges.judge(COUNT, COUNT.sql, env) for env in range(4)]

    assert [judged.right for judged in asyncio.run(play())] == [True] * 4


def test_closing_ends_the_processes():
    judges = SqlWorkerPool(world_of(0), MADE_BOUNDS, count=1)
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


@pytest.fixture
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
@pytest.mark.parametrize(
    ("profiling_signal", "seconds"),
    [("default", 0.6), ("default", 0.2), ("ignored", 0.2), ("blocked", 0.2)],
    indirect=["profiling_signal"],
)
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
