"""The wait of a statement on the local SQLGym server while others execute the worst statements.

Eight environments each send a statement that takes as long as the server lets it; then another environment
sends ``SELECT 1``. It may wait for the number of statements before it, divided by the number of worker
processes, times the limit of one statement, plus half a second. The same is measured with eight statements of
one environment: the other may then wait for one of them at most, plus half a second.

The limit of a statement is one second of processor time. Before each measurement, as many processes as the
server has workers use one second of processor time at once: the seconds that this takes by the clock are the
limit in this measurement. Other load on the machine then extends both the limit and the wait.

Prints JSON: the waits in seconds, and the longest as a share of the allowed wait. Run it with ``python
benchmarks/sql_fairness.py``.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import httpx
from _common import at_most, report, seconds, usually

from agentgym_gym.local_servers import LocalServer

LIMIT = 1.0  # seconds of processor time
SLACK = 0.5
STATEMENTS = usually(8, quick=3)
MEASUREMENTS = usually(3, quick=1)
WORKERS = min(8, max(2, os.cpu_count() or 1))  # as on the server
ARRIVAL = 0.1  # seconds until the server has received the statements before

_LONG = "printf('%.*c', 1000000, 'a')"
_HALF = "printf('%.*c', 500000, 'a')"
WORST = (
    f"SELECT instr({_LONG}, {_HALF} || 'b')",
    f"SELECT replace({_LONG}, {_HALF} || 'b', '')",
    f"SELECT sum(cast(replace({_LONG}, 'a', '9') AS real)) FROM students a, students b",  # noqa: S608
    f"WITH RECURSIVE c(x) AS (SELECT {_LONG} UNION ALL SELECT x || '' FROM c) SELECT count(*) FROM c",  # noqa: S608
)

USE_PROCESSOR = f"""if True:
    import time
    began, until = time.perf_counter(), time.process_time() + {LIMIT}
    while time.process_time() < until:
        pass
    print(time.perf_counter() - began)
"""


def limit_by_the_clock() -> float:
    """Return the seconds in which each of as many processes as workers uses the limit of one statement."""
    processes = [
        subprocess.Popen(  # noqa: S603
            [sys.executable, "-I", "-c", USE_PROCESSOR],
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,  # as the workers, because Linux can divide the processor by sessions
        )
        for _ in range(WORKERS)
    ]
    return max(float(process.communicate()[0]) for process in processes)


def new_env(client: httpx.Client) -> int:
    """Create an environment and start a task in it."""
    env_idx: int = client.post("/create").json()
    client.post("/reset", json={"env_idx": env_idx, "item_id": 0}).raise_for_status()
    return env_idx


def step(client: httpx.Client, env_idx: int, sql: str) -> str:
    """Execute a statement; return its result."""
    reply = client.post("/step", json={"env_idx": env_idx, "action": sql})
    state: str = reply.raise_for_status().json()["state"]
    return state


def wait_behind(client: httpx.Client, envs: Sequence[int]) -> float:
    """Return how long another environment waits behind one of the worst statements of each of these."""
    other = new_env(client)
    with ThreadPoolExecutor(len(envs)) as pool:
        before = [
            pool.submit(step, client, env_idx, WORST[number % len(WORST)])
            for number, env_idx in enumerate(envs)
        ]
        time.sleep(ARRIVAL)
        waited = seconds(lambda: step(client, other, "SELECT 1")) + ARRIVAL
        results = {each.result() for each in before}
    if results != {"interrupted"}:
        raise RuntimeError(f"statements ended before their limit: {results}")
    return waited


def main() -> None:
    """Measure and print."""
    server = LocalServer("sqlgym")
    waits: dict[str, list[float]] = {"eight_environments": [], "one_environment": []}
    shares: dict[str, list[float]] = {name: [] for name in waits}
    limits: list[float] = []
    try:
        with httpx.Client(base_url=server.start(), timeout=120) as client:
            step(client, new_env(client), "SELECT 1")
            envs = [new_env(client) for _ in range(STATEMENTS)]
            senders = {
                "eight_environments": (envs, STATEMENTS / WORKERS),
                "one_environment": (envs[:1] * STATEMENTS, 1),
            }
            for _ in range(MEASUREMENTS):
                for name, (sources, turns) in senders.items():
                    limits.append(limit_by_the_clock())
                    waits[name].append(wait_behind(client, sources))
                    shares[name].append(waits[name][-1] / (turns * limits[-1] + SLACK))
    finally:
        server.stop()
    report(
        benchmark="sql_fairness",
        measurements=MEASUREMENTS,
        workers=WORKERS,
        limit_seconds=[round(each, 2) for each in limits],
        wait_seconds={name: [round(each, 2) for each in measured] for name, measured in waits.items()},
        **{name: at_most([max(measured)], 1.0) for name, measured in shares.items()},
    )


if __name__ == "__main__":
    main()
