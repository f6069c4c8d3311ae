"""The overhead of isolation in a step: an environment in a thread or a process, compared with a plain call.

The environment returns a text of 1 kB immediately. An episode in a thread, one in a process and the
environment itself are interleaved step by step, so that other load on the machine slows all equally. An
episode of `agentgym_gym.rollout` also records the conversation, which is included in the measurement.

A measurement is the difference of two medians in milliseconds. There are five; the bar is for the median of
these.

Prints JSON: the medians in microseconds and the differences. Run it with ``python benchmarks/isolation.py``.
"""

from __future__ import annotations

import asyncio
import statistics
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from typing import TypeAlias

from _common import MEASUREMENTS, at_most, report, usually
from _echo_env import TEXT, Echo

from agentgym_gym.rollout import Pool

STEPS = usually(1000, quick=20)  # in each measurement
WARM_UP = 10

Step: TypeAlias = Callable[[], Awaitable[object]]


async def main() -> None:
    """Measure and print."""
    env = Echo()
    env.reset(seed=0)

    async def alone() -> object:
        return env.step(TEXT)

    async with AsyncExitStack() as stack:
        ways: dict[str, Step] = {"alone": alone}
        for isolate in ("thread", "process"):
            pool = await stack.enter_async_context(Pool(Echo, isolate=isolate))
            episode = await stack.enter_async_context(pool.episode(seed=0))
            ways[isolate] = lambda episode=episode: episode.step(TEXT)  # type: ignore[misc]
        await measure(ways, WARM_UP)
        medians = [await measure(ways, STEPS) for _ in range(MEASUREMENTS)]
    report(
        benchmark="isolation",
        measurements=MEASUREMENTS,
        steps_each=STEPS,
        median_us={
            name: round(statistics.median(each[name] for each in medians) * 1e6, 1) for name in medians[0]
        },
        thread_ms=at_most(added(medians, "thread"), 0.5),
        process_ms=at_most(added(medians, "process"), 1.0),
    )


async def measure(ways: Mapping[str, Step], times: int) -> dict[str, float]:
    """Return the median seconds of a step of each, interleaved."""
    took: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(times):
        for name, step in ways.items():
            began = time.perf_counter()
            await step()
            took[name].append(time.perf_counter() - began)
    return {name: statistics.median(each) for name, each in took.items()}


def added(medians: list[dict[str, float]], name: str) -> list[float]:
    """Return the milliseconds that a way adds to a step, in each measurement."""
    return [(each[name] - each["alone"]) * 1e3 for each in medians]


if __name__ == "__main__":
    asyncio.run(main())
