"""The speed of the local servers: the duration of a single step, and steps per second with 32 clients.

Each server runs in its own process. The oracle plays some tasks, one after another; a step is from the
request to the response, as in ``env_seconds`` of `StepRecord`. Then 32 episodes at once repeat its replies.
Then ALFWorld's server holds many environments in play, and its resident memory is read (on Linux only).
Prints JSON: the median milliseconds of each server's step and its steps per second, and the limits of some.

Run it with ``python benchmarks/local_servers.py``.
"""

from __future__ import annotations

import asyncio
import statistics
import time
from functools import partial
from pathlib import Path

import httpx
from _common import report, usually

from agentgym_gym import AsyncAgentGymEnv, Environment, environments
from agentgym_gym.evaluate import EpisodeRecord, evaluate_async, load_oracle
from agentgym_gym.local_servers import LocalServer, available
from agentgym_gym.testing import ScriptedAgent

TASKS = usually(40, quick=2)
AT_ONCE = 32
EPISODES = usually(256, quick=32)
OTHERS = {"SciWorld", "WebArena", "MiniWoB"}
"""Servers that play in another program, Java or a browser; each has a benchmark of its own."""

LIMITS_MS = {"WebShop": 5.0, "BabyAI": 3.0, "ALFWorld": 1.0}
"""Maximum milliseconds of a step."""
LEAST_STEPS = {"ALFWorld": 2000}
"""Minimum steps per second with many clients."""
HELD = usually(500, quick=20)
MOST_MB = 300
"""Maximum memory of ALFWorld's server with that many environments."""


def played(environment: Environment, url: str, tasks: list[int]) -> list[EpisodeRecord]:
    """Play tasks with the oracle, one after another."""
    env = partial(AsyncAgentGymEnv, environment.name, server=url)
    records = asyncio.run(evaluate_async(env, partial(load_oracle, environment), tasks, concurrency=1))
    faulted = [record.task_id for record in records if not record.scored]
    if faulted:
        raise RuntimeError(f"{environment.name}: faults in {faulted}")
    return records


def steps_a_second(environment: Environment, url: str, replies: tuple[str, ...], task: int) -> float:
    """Repeat one task's replies in many episodes at once."""
    env = partial(AsyncAgentGymEnv, environment.name, server=url)
    began = time.perf_counter()
    records = asyncio.run(
        evaluate_async(env, partial(ScriptedAgent, *replies), [task] * EPISODES, concurrency=AT_ONCE)
    )
    return sum(record.turns for record in records) / (time.perf_counter() - began)


def memory_mb(server: LocalServer) -> float:
    """Return the resident memory of ALFWorld's server that holds environments in play."""
    if server.process is None:
        raise RuntimeError("the server is not running")
    with httpx.Client(base_url=server.url, timeout=60) as client:
        for task in range(HELD):
            env_id = client.post("/create").json()["id"]
            client.post("/reset", json={"id": env_id, "game": task, "world_type": "Text"})
            client.post("/step", json={"id": env_id, "action": "look"})
    status = Path(f"/proc/{server.process.pid}/status").read_text("ascii")
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS")) / 1024


def main() -> None:
    """Measure each server."""
    steps: dict[str, float] = {}
    many: dict[str, int] = {}
    held = 0.0
    for environment in environments():
        missing = available(environment.name) is not None
        if environment.local_server is None or missing or environment.name in OTHERS:
            continue
        server = LocalServer(environment.local_server)
        try:
            url = server.start()
            test = next(environment.splits[name] for name in ("test", "dev") if name in environment.splits)
            records = played(environment, url, list(test[:TASKS]))
            step = 1000 * statistics.median(s["env_seconds"] for r in records for s in r.steps)
            longest = max(records, key=lambda record: record.turns)
            steps[environment.name] = round(step, 3)
            many[environment.name] = round(steps_a_second(environment, url, longest.replies, longest.task_id))
            if environment.name == "ALFWorld":
                held = memory_mb(server)
        finally:
            server.stop()
    limited = {
        f"{name}_step": {"ms": steps[name], "at_most": limit, "met": steps[name] <= limit}
        for name, limit in LIMITS_MS.items()
    }
    quick = {
        f"{name}_steps_a_second": {"steps": many[name], "at_least": least, "met": many[name] >= least}
        for name, least in LEAST_STEPS.items()
    }
    memory = {"envs": HELD, "mb": round(held), "at_most": MOST_MB, "met": held <= MOST_MB}
    report(
        benchmark="local_servers",
        at_once=AT_ONCE,
        step_ms=steps,
        steps_a_second=many,
        **limited,
        **quick,
        ALFWorld_memory=memory,
    )


if __name__ == "__main__":
    main()
