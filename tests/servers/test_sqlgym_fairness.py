"""Who waits for whom on the SQLGym server, and what an attempt is when a worker ends: over real sockets."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

from agentgym_gym.local_servers import server_kind
from local_game import solution
from served_app import served

SOLUTION = solution("SQLGym", 0)[0].sql
BIRD_TASK = 9_428  # the first of the dev split
WORKERS = min(8, max(2, os.cpu_count() or 1))
MEGABYTE = "printf('%.*c', 1000000, 'a')"
ENDLESS = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT count(*) FROM c"
STUCK = f"SELECT instr({MEGABYTE}, printf('%.*c', 500000, 'a') || 'b')"
"""Spends minutes within one function, so that only the end of its process ends it."""

STUDENTS = "FROM students a, students b, students c"
WORST = {
    "a value beyond the limit": "SELECT instr(printf('%.*c', 15000000, 'a'), printf('%.*c', 7000000, 'a'))",
    "a pattern that backtracks": f"SELECT {MEGABYTE} GLOB '{'*[a-z]' * 150}[b]'",
    "a pattern that is too long": f"SELECT {MEGABYTE} GLOB {MEGABYTE}",
    "a result of long values": f"SELECT {','.join(['x'] * 1_900)} FROM (SELECT {MEGABYTE} AS x)",  # noqa: S608
    "deep brackets": f"SELECT {'(' * 5_000}1{')' * 5_000}",
    "a long statement": f"SELECT 1 WHERE 1 IN ({','.join(map(str, range(140_000)))})",
    "a blob of zeros": "SELECT zeroblob(1000000000)",
    "a random blob": "SELECT hex(randomblob(100000000))",
    "another file": "ATTACH '/tmp/agentgym-no-such.db' AS x",
    "a setting": "PRAGMA hard_heap_limit = 0",
}
"""Statements that take much time or memory, or are refused."""

WORST_SLOW = {
    "a search in a long value": STUCK,
    "a recursion without end": ENDLESS,
    "a cross join": f"SELECT count(*) {STUDENTS}, students d, students e",
    "many rows": f"SELECT a.name {STUDENTS}",
    "a long concatenation": f"SELECT length(group_concat(a.name)) {STUDENTS} GROUP BY c.name",
    "a sort beyond memory": f"SELECT 1 {STUDENTS} ORDER BY a.name || printf('%900d', 1)",
    "nested tables that double": "WITH c0 AS (SELECT 1 AS x)"  # noqa: S608
    + "".join(f", c{n} AS (SELECT a.x FROM c{n - 1} a, c{n - 1} b)" for n in range(1, 40))  # noqa: S608
    + " SELECT count(*) FROM c39",
    "many long searches": "SELECT instr(printf('%.*c', 99999, 'a') || name, printf('%.*c', 50000, 'b')) "
    "FROM students a",
    "a replacement in a long value": f"SELECT replace({MEGABYTE}, printf('%.*c', 450000, 'a') || 'b', '')",
    "long values without end": f"WITH RECURSIVE c(x) AS (SELECT {MEGABYTE} UNION ALL SELECT x || '' FROM c) "  # noqa: S608
    "SELECT count(*) FROM c",
    "numbers of a million digits": f"SELECT sum(cast(replace({MEGABYTE}, 'a', '9') AS real)) {STUDENTS}",
    "a cross join of patterns": f"SELECT count(*) {STUDENTS} WHERE {MEGABYTE} || a.name LIKE '%b%c'||b.name",
    "a wide result": f"SELECT {','.join(['a.*'] * 300)} {STUDENTS}",
}
"""More statements that take as long as the server lets them."""


@contextlib.contextmanager
def client_of(app):
    with served(app) as url, httpx.Client(base_url=url, timeout=120) as client:
        yield client


@pytest.fixture(scope="module")
def app():
    return server_kind("sqlgym").app()


@pytest.fixture(scope="module")
def client(app):
    with client_of(app) as client:
        yield client


def new_env(client: httpx.Client, item_id: int = 0) -> int:
    env_idx = client.post("/create").json()
    client.post("/reset", json={"env_idx": env_idx, "item_id": item_id}).raise_for_status()
    return env_idx


def step(client: httpx.Client, env_idx: int, sql: str) -> dict:
    reply = client.post("/step", json={"env_idx": env_idx, "action": sql})
    reply.raise_for_status()
    return reply.json()


def rewards(client: httpx.Client, env_idx: int, *statements: str) -> list[float]:
    return [step(client, env_idx, sql)["reward"] for sql in statements]


@contextlib.contextmanager
def steps_in_progress(client: httpx.Client, *steps: tuple[int, str]):
    """Send steps at once; yields their futures after the server has received them."""
    with ThreadPoolExecutor(len(steps)) as pool:
        sent = [pool.submit(step, client, *each) for each in steps]
        time.sleep(0.2)
        client.get("/list_envs").raise_for_status()
        yield sent


def all_workers(app, client: httpx.Client) -> set[int]:
    """Occupy all workers at once, so that each has a process; return the ids of these."""
    while len(app.state.workers.process_ids) < WORKERS:
        with steps_in_progress(client, *((new_env(client), ENDLESS) for _ in range(WORKERS))):
            pass
    return app.state.workers.process_ids


@pytest.mark.parametrize(
    "sql",
    [
        *(pytest.param(sql, id=name) for name, sql in WORST.items()),
        *(pytest.param(sql, id=name, marks=pytest.mark.slow) for name, sql in WORST_SLOW.items()),
    ],
)
def test_the_worst_statements_end_and_the_next_one_is_not_harmed(client, sql):
    env_idx, other = new_env(client), new_env(client)
    reply = step(client, env_idx, sql)
    assert (reply["reward"], reply["done"]) == (0.0, True)
    assert len(reply["state"]) <= 103
    assert rewards(client, other, SOLUTION, SOLUTION) == [1.0, 0.0]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["a recursion without end", "a cross join"])
def test_a_statement_of_too_many_steps_is_interrupted_and_its_worker_continues(app, client, name):
    """SQLite itself stops it: a worker that the system has to end is replaced by another process."""
    before = all_workers(app, client)
    for _ in range(2):
        assert step(client, new_env(client), WORST_SLOW[name])["state"] == "interrupted"
        assert rewards(client, new_env(client), SOLUTION) == [1.0]
    assert app.state.workers.process_ids == before


@pytest.mark.skipif(sys.version_info < (3, 11), reason="Python 3.10 cannot set SQLite's limits")
def test_the_length_of_one_value_is_limited(client):
    assert step(client, new_env(client), f"SELECT length({MEGABYTE})")["state"] == "[(1000000,)]"
    assert (
        step(client, new_env(client), f"SELECT {MEGABYTE} || {MEGABYTE}")["state"] == "string or blob too big"
    )


@pytest.mark.slow
def test_statements_that_end_their_workers_fail_no_other(app, client):
    before = all_workers(app, client)
    hogs = [new_env(client) for _ in range(WORKERS + 2)]
    others = [new_env(client) for _ in range(4)]
    with steps_in_progress(client, *((env_idx, STUCK) for env_idx in hogs)) as stuck:
        with ThreadPoolExecutor(len(others)) as pool:
            scored = list(pool.map(lambda env_idx: rewards(client, env_idx, SOLUTION, SOLUTION), others))
        assert [each.result()["state"] for each in stuck] == ["interrupted"] * len(hogs)
    assert scored == [[1.0, 0.0]] * len(others)
    assert before & app.state.workers.process_ids == set()


@pytest.mark.slow
def test_of_two_statements_at_once_only_one_can_score(client):
    """Both wait for others, so that neither is finished when the other one arrives."""
    env_idx = new_env(client)
    hogs = [(new_env(client), STUCK) for _ in range(WORKERS)]
    with steps_in_progress(client, *hogs), ThreadPoolExecutor(2) as pool:
        replies = list(pool.map(lambda sql: step(client, env_idx, sql), [SOLUTION] * 2))
    assert sorted(reply["reward"] for reply in replies) == [0.0, 1.0]
    assert replies[0]["state"] == replies[1]["state"]


@pytest.mark.slow
def test_a_statement_that_ended_its_worker_was_the_attempt(client):
    env_idx = new_env(client)
    assert step(client, env_idx, STUCK)["state"] == "interrupted"
    assert rewards(client, env_idx, SOLUTION) == [0.0]
    client.post("/reset", json={"env_idx": env_idx, "item_id": 0})
    assert rewards(client, env_idx, SOLUTION, SOLUTION) == [1.0, 0.0]


def test_a_statement_whose_worker_died_is_executed_by_another_one_and_counts_once(app, client):
    env_idx = new_env(client)
    for pid in all_workers(app, client):
        os.kill(pid, signal.SIGKILL)
    assert rewards(client, env_idx, SOLUTION, SOLUTION) == [1.0, 0.0]


@pytest.mark.slow
def test_a_statement_whose_worker_dies_before_it_begins_is_executed_by_another_one(app, client):
    """The worker is stopped, so that it has received the statement and has not started it."""
    env_idx = new_env(client)
    stopped = all_workers(app, client)
    for pid in stopped:
        os.kill(pid, signal.SIGSTOP)
    with steps_in_progress(client, (env_idx, SOLUTION)) as (scored,):
        for pid in stopped:
            with contextlib.suppress(ProcessLookupError):  # the server has ended one that did not answer
                os.kill(pid, signal.SIGKILL)
        assert scored.result()["reward"] == 1.0
    assert rewards(client, env_idx, SOLUTION) == [0.0]


@pytest.mark.slow
def test_eight_statements_of_one_environment_do_not_delay_another(bird):
    """On files of BIRD, where each of the eight takes half a minute."""
    app = server_kind("sqlgym").app(data=bird)
    with client_of(app) as client:
        hog, other = new_env(client, BIRD_TASK), new_env(client, BIRD_TASK)
        with steps_in_progress(client, *([(hog, ENDLESS)] * 8)) as endless:
            assert rewards(client, other, "SELECT 2") == [1.0]
            assert not any(each.done() for each in endless)
            app.state.workers.close()


@pytest.mark.slow
def test_a_statement_that_was_not_executed_was_no_attempt(bird):
    file = bird / "dev_databases" / "zoo" / "zoo.sqlite"
    app = server_kind("sqlgym").app(data=bird)
    with client_of(app) as client:
        env_idx = new_env(client, BIRD_TASK)
        moved = file.rename(file.with_suffix(".moved"))
        for pid in app.state.workers.process_ids:  # a running one has the file open
            os.kill(pid, signal.SIGKILL)
        reply = client.post("/step", json={"env_idx": env_idx, "action": "SELECT 2"})
        assert (reply.status_code, reply.headers["agentgym-judge"]) == (500, "failed")
        assert f"task {BIRD_TASK} cannot be judged: its database dev/zoo cannot be read: unable" in reply.text
        moved.rename(file)
        assert rewards(client, env_idx, "SELECT 2", "SELECT 2") == [1.0, 0.0]


@pytest.mark.slow
def test_values_on_files_of_bird_are_as_long_as_sqlite_allows(bird):
    with client_of(server_kind("sqlgym").app(data=bird)) as client:
        env_idx = new_env(client, BIRD_TASK)
        sql = "SELECT length(printf('%.*c', 40000000, 'a'))"
        assert step(client, env_idx, sql)["state"] == "[(40000000,)]"
