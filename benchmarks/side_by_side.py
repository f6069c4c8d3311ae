"""How fast the vector environment steps, beside the ideal, raw aiohttp and a shared httpx client, in one run.

A server of TextCraft's wire that takes 50 ms for each step runs in a process of its own. The vector
environment steps in rounds, each as long as its slowest step. Its peers are tasks that wait for nobody,
which is easier, and they neither read what an agent wrote nor judge what the server said. What aiohttp
reaches in rounds of 64 is printed, too: it tells what the ideal is worth on this machine.

Prints JSON: steps a second, and the ratios. Run it by ``python benchmarks/side_by_side.py``.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

import aiohttp
import httpx
from _common import at_least, report, slow_server, usually

from agentgym_gym import AgentGymVectorEnv

DELAY = 0.05  # seconds the server takes for a step
REPLY = "Thought:\nI have a look at what I hold before I decide.\n\nAction:\ninventory"
ROUNDS = usually(20, quick=2)


def vector(url: str, number: int) -> float:
    """Return the steps a second of so many environments in lock-step."""
    envs = AgentGymVectorEnv(number, "TextCraft", server=url, max_turns=None)
    envs.reset(options={"task_id": 0})
    envs.step([REPLY] * number)
    began = time.perf_counter()
    for _ in range(ROUNDS):
        *_, infos = envs.step([REPLY] * number)
    seconds = time.perf_counter() - began
    if "fault" in infos:
        raise RuntimeError(f"an environment failed: {infos['fault']}")
    envs.close()
    return number * ROUNDS / seconds


Play: TypeAlias = Callable[[int, Callable[[int], Awaitable[Any]]], Awaitable[float]]


async def tasks(number: int, step: Callable[[int], Awaitable[Any]]) -> float:
    """Return the steps a second of so many tasks, each waiting for its own server's answer alone."""

    async def play(env_id: int) -> None:
        for _ in range(ROUNDS):
            await step(env_id)

    await asyncio.gather(*(step(env_id) for env_id in range(number)))
    began = time.perf_counter()
    await asyncio.gather(*(play(env_id) for env_id in range(number)))
    return number * ROUNDS / (time.perf_counter() - began)


async def rounds(number: int, step: Callable[[int], Awaitable[Any]]) -> float:
    """Return the steps a second of rounds in which all wait for the slowest."""
    await asyncio.gather(*(step(env_id) for env_id in range(number)))
    began = time.perf_counter()
    for _ in range(ROUNDS):
        await asyncio.gather(*(step(env_id) for env_id in range(number)))
    return number * ROUNDS / (time.perf_counter() - began)


async def by_aiohttp(url: str, number: int, play: Play = tasks) -> float:
    """Return what aiohttp does with the same requests and nothing else."""
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:

        async def step(env_id: int) -> Any:
            async with session.post(f"{url}/step", json={"id": env_id, "action": "inventory"}) as response:
                return await response.json(content_type=None)

        return await play(number, step)


async def by_httpx(url: str, number: int) -> float:
    """Return what one shared client of httpx does."""
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=None)
    async with httpx.AsyncClient(limits=limits, timeout=300) as client:

        async def step(env_id: int) -> Any:
            response = await client.post(f"{url}/step", json={"id": env_id, "action": "inventory"})
            return response.json()

        return await tasks(number, step)


def main() -> None:
    """Measure all of it against one server."""
    with slow_server(DELAY) as url:
        rate = {
            "vector_64": vector(url, 64),
            "vector_256": vector(url, 256),
            "aiohttp_64_in_rounds": asyncio.run(by_aiohttp(url, 64, rounds)),
            "aiohttp_256": asyncio.run(by_aiohttp(url, 256)),
            "httpx_256": asyncio.run(by_httpx(url, 256)),
        }
    report(
        benchmark="side_by_side",
        steps_a_second={name: round(each) for name, each in rate.items()},
        share_of_the_ideal_64=at_least(rate["vector_64"] / (64 / DELAY), 0.9),
        beside_aiohttp_256=at_least(rate["vector_256"] / rate["aiohttp_256"], 0.75),
        beside_httpx_256=at_least(rate["vector_256"] / rate["httpx_256"], 15),
    )


if __name__ == "__main__":
    main()
