"""Whether the episodes of one worker slow each other down: a step with 63 other episodes, and without.

A server of TextCraft's wire that takes 50 ms for each step runs in its own process. Episodes of
`verl_bridge.tasks` play it: first one by itself, then 64 at once in one event loop, as in verl's agent loop
worker, each "generating" for a while between its steps. Prints JSON: the medians in milliseconds, their
ratio, and the longest time for which the event loop was blocked.

Run it with ``python benchmarks/concurrent_episodes.py``.
"""

from __future__ import annotations

import asyncio
import random
import statistics
import time

from _common import report, slow_server, usually

from agentgym_gym.rollout import close_all
from verl_bridge.tasks import EnvTask

DELAY = 0.05  # seconds of a step on the server
GENERATING = 0.2  # mean seconds of a model's reply, which is short
EPISODES = usually(64, quick=4)
STEPS = usually(30, quick=2)


async def play(task: EnvTask, draw: random.Random) -> list[float]:
    """Play an episode; return the seconds of each step."""
    took = []
    async with task.episode() as episode:
        await asyncio.sleep(draw.uniform(0, GENERATING))
        for _ in range(STEPS):
            began = time.perf_counter()
            await episode.step("Action: inventory")
            took.append(time.perf_counter() - began)
            await asyncio.sleep(draw.expovariate(1 / GENERATING))
        if episode.fault:
            raise RuntimeError(episode.fault)
    return took


async def watch(longest: list[float]) -> None:
    """Record the longest time for which the event loop was blocked."""
    while True:
        began = time.perf_counter()
        await asyncio.sleep(0.005)
        longest[0] = max(longest[0], time.perf_counter() - began - 0.005)


async def measure(url: str) -> dict[str, float]:
    """Measure one episode by itself, then many at once."""
    task = EnvTask("agentgym_gym:agentgym/TextCraft-v0", {"server": url, "max_turns": None}, {"task_id": 0})
    draw = random.Random(0)  # noqa: S311 - not a secret
    await play(task, draw)  # lazy imports happen here
    alone = [seconds for _ in range(3) for seconds in await play(task, draw)]
    longest = [0.0]
    watching = asyncio.create_task(watch(longest))
    among = await asyncio.gather(*(play(task, draw) for _ in range(EPISODES)))
    watching.cancel()
    both = statistics.median(alone), statistics.median(s for episode in among for s in episode)
    mean = statistics.mean(s for episode in among for s in episode) / statistics.mean(alone)
    return {
        "episodes": EPISODES,
        "steps_each": STEPS,
        "alone_ms": round(both[0] * 1e3, 2),
        "among_ms": round(both[1] * 1e3, 2),
        "ratio": round(both[1] / both[0], 3),
        "ratio_of_means": round(mean, 3),
        "longest_block_ms": round(longest[0] * 1e3, 1),
    }


def main() -> None:
    """Measure and print."""
    with slow_server(DELAY) as url:
        report(benchmark="concurrent_episodes", **asyncio.run(measure(url)))
        close_all()


if __name__ == "__main__":
    main()
