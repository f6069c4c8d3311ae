"""When 64 episodes with steps of varying length finish, each independently or all in lock-step.

The duration of a step has a lognormal distribution with the median 50 ms and sigma 1: one in a hundred takes
over half a second. An episode has 10 to 30 steps, uniformly distributed, because tasks differ. Both depend
only on the task and the step, so both ways wait for the same steps. In lock-step
(``AgentGymVectorEnv.step``), a round takes as long as its slowest step, and a finished environment no longer
takes part; asynchronously (``AsyncAgentGymEnv``), no environment waits for another.

The bar is for the mean finishing time of the episodes, counted from the first step, because a trainer or a
table can use each as soon as it is finished; the median and the last are printed too.

Prints JSON: seconds and ratios. Run it with ``python benchmarks/heavy_tails.py``.
"""

from __future__ import annotations

import asyncio
import statistics
import time

import numpy as np
from _common import at_least, report, slow_server, usually

from agentgym_gym import AgentGymVectorEnv, AsyncAgentGymEnv

MEDIAN, SIGMA = 0.05, 1.0
EPISODES = 64
LENGTHS = usually((10, 30), quick=(1, 2))
REPLY = "Thought:\nI have a look at what I hold before I decide.\n\nAction:\ninventory"


def in_lock_step(url: str) -> list[float]:
    """Return the finishing time of each episode, played in rounds."""
    envs = AgentGymVectorEnv(EPISODES, "TextCraft", server=url, max_turns=None)
    envs.reset(options={"task_id": list(range(EPISODES))})
    finished: list[float] = []
    going = np.ones(EPISODES, dtype=np.bool_)
    began = time.perf_counter()
    while going.any():
        *_, terminated, truncated, infos = envs.step([REPLY if each else None for each in going])
        if "fault" in infos:
            raise RuntimeError(f"an environment failed: {infos['fault']}")
        ended = going & (terminated | truncated)
        finished += [time.perf_counter() - began] * int(ended.sum())
        going &= ~ended
    envs.close()
    return finished


async def by_themselves(url: str) -> list[float]:
    """Return the finishing time of each episode, played independently."""
    envs = [AsyncAgentGymEnv("TextCraft", server=url, max_turns=None) for _ in range(EPISODES)]
    await asyncio.gather(*(env.reset(options={"task_id": task}) for task, env in enumerate(envs)))
    began = time.perf_counter()

    async def play(env: AsyncAgentGymEnv) -> float:
        ended = False
        while not ended:
            *_, terminated, truncated, info = await env.step(REPLY)
            if "fault" in info:
                raise RuntimeError(f"an environment failed: {info['fault']}")
            ended = terminated or truncated
        return time.perf_counter() - began

    finished = await asyncio.gather(*map(play, envs))
    await asyncio.gather(*(env.close() for env in envs))
    return finished


def main() -> None:
    """Play the same episodes both ways."""
    with slow_server(MEDIAN, SIGMA, *LENGTHS) as url:
        finished = {"lock_step": in_lock_step(url), "asynchronous": asyncio.run(by_themselves(url))}
    took = {
        "mean": {way: statistics.mean(each) for way, each in finished.items()},
        "median": {way: statistics.median(each) for way, each in finished.items()},
        "last": {way: max(each) for way, each in finished.items()},
    }
    ratios = {name: each["lock_step"] / each["asynchronous"] for name, each in took.items()}
    report(
        benchmark="heavy_tails",
        episodes=EPISODES,
        steps_each=LENGTHS,
        step_seconds={"median": MEDIAN, "sigma": SIGMA},
        finished_s={name: {way: round(s, 2) for way, s in each.items()} for name, each in took.items()},
        faster_by_the_mean=at_least([ratios["mean"]], 2),
        faster_by_the_median={"ratio": round(ratios["median"], 2)},
        faster_by_the_last={"ratio": round(ratios["last"], 2)},
    )


if __name__ == "__main__":
    main()
