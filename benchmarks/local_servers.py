"""The speed of the local servers: the duration of a single step, and steps per second with 32 clients.

Each server runs in its own process. The oracle plays some tasks, one after another; a step is from the
request to the response, as in ``env_seconds`` of `StepRecord`. Then 32 episodes at once repeat its replies.
Prints JSON: the median milliseconds of each server's step and its limit, and its steps per second.

Run it with ``python benchmarks/local_servers.py``.
"""

from __future__ import annotations

import asyncio
import statistics
import time
from functools import partial

from _common import report, usually

from agentgym_gym import AsyncAgentGymEnv, Environment, environments
from agentgym_gym.evaluate import EpisodeRecord, evaluate_async, load_oracle
from agentgym_gym.local_servers import LocalServer
from agentgym_gym.testing import ScriptedAgent

TASKS = usually(40, quick=2)
AT_ONCE = 32
EPISODES = usually(256, quick=32)
OTHERS = {"WebArena"}
"""Servers whose steps are of another kind: those of a browser are measured by ``webarena.py``."""

LIMITS_MS = {"WebShop": 5.0, "BabyAI": 3.0}
"""Maximum milliseconds of a step."""


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


def main() -> None:
    """Measure each server."""
    steps: dict[str, float] = {}
    many: dict[str, int] = {}
    for environment in environments():
        if environment.local_server is None or environment.name in OTHERS:
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
        finally:
            server.stop()
    limited = {
        f"{name}_step": {"ms": steps[name], "at_most": limit, "met": steps[name] <= limit}
        for name, limit in LIMITS_MS.items()
    }
    report(benchmark="local_servers", at_once=AT_ONCE, step_ms=steps, steps_a_second=many, **limited)


if __name__ == "__main__":
    main()
