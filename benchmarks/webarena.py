"""The speed of the local server of WebArena: steps per second of eight episodes at once.

The oracle plays tasks of all templates. A step is an action in the browser and the page as text after it; the
time of resets counts too. Prints JSON: steps per second and its limit, the median milliseconds of a step, and
on Linux the processor time of a step in the server and in all processes of its browser. Without Chromium, or
the extra of a server, it prints the reason.

Run it with ``python benchmarks/webarena.py``.
"""

from __future__ import annotations

import asyncio
import os
import statistics
import time
from functools import partial
from pathlib import Path

from _common import report, usually

from agentgym_gym import AsyncAgentGymEnv, find
from agentgym_gym.evaluate import evaluate_async, load_oracle
from agentgym_gym.local_servers import LocalServer, available

AT_ONCE = 8
TASKS = usually(96, quick=4)
LEAST = 10.0
"""Minimum steps per second on two cores; the project itself reports .68 with 16 clients."""


def processor_seconds(root: int) -> float:
    """Return the processor time of a process and all below it, including those that ended; 0 if not Linux."""
    rows = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text("utf-8", "replace").rpartition(")")[2].split()
        except OSError:  # it ended meanwhile
            continue
        rows[int(path.parent.name)] = (int(fields[1]), sum(map(int, fields[11:15])))
    below = {root}
    while more := {pid for pid, (parent, _) in rows.items() if parent in below} - below:
        below |= more
    return sum(rows[pid][1] for pid in below if pid in rows) / os.sysconf("SC_CLK_TCK")


def measure(name: str) -> None:
    """Measure the server of an environment in a browser."""
    missing = available(name)
    if missing is not None:
        report(benchmark=name.lower(), skipped=missing)
        return
    environment = find(name)
    server = LocalServer(name.lower(), start_seconds=120)
    try:
        env = partial(AsyncAgentGymEnv, name, server=server.start())
        oracle = partial(load_oracle, environment)
        asyncio.run(evaluate_async(env, oracle, [0], concurrency=1))  # starts the browser
        pid = server.process.pid if server.process is not None else 0
        used, began = processor_seconds(pid), time.perf_counter()
        ids = [task for task in environment.task_ids if task not in environment.unwinnable]
        tasks = ids[:: max(1, len(ids) // TASKS)][:TASKS]
        records = asyncio.run(evaluate_async(env, oracle, tasks, concurrency=AT_ONCE))
        seconds = time.perf_counter() - began
        used = processor_seconds(pid) - used
    finally:
        server.stop()
    faulted = [record.task_id for record in records if not record.success]
    if faulted:
        raise RuntimeError(f"not won: {faulted}")
    steps = sum(record.turns for record in records)
    rate = steps / seconds
    report(
        benchmark=name.lower(),
        at_once=AT_ONCE,
        steps=steps,
        step_ms=round(1000 * statistics.median(s["env_seconds"] for r in records for s in r.steps), 1),
        processor_ms_a_step=round(1000 * used / steps, 1),
        steps_a_second={"steps": round(rate, 2), "at_least": LEAST, "met": rate >= LEAST},
    )


if __name__ == "__main__":
    measure("WebArena")
