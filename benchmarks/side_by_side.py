"""How fast the vector environment steps, beside the ideal, raw aiohttp and a shared httpx client, in one run.

A server of TextCraft's wire that takes 50 ms for each step runs in a process of its own. Prints JSON: steps a
second, and the ratios. Run it by ``python benchmarks/side_by_side.py``.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from typing import Any

import aiohttp
import httpx
from concurrent_episodes import DELAY, SERVER

from agentgym_gym import AgentGymVectorEnv

REPLY = "Thought:\nI have a look at what I hold before I decide.\n\nAction:\ninventory"
ROUNDS = 20


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


async def tasks(number: int, step: Callable[[int], Awaitable[Any]]) -> float:
    """Return the steps a second of so many tasks, each waiting for its own server's answer alone."""

    async def play(env_id: int) -> None:
        for _ in range(ROUNDS):
            await step(env_id)

    await asyncio.gather(*(step(env_id) for env_id in range(number)))
    began = time.perf_counter()
    await asyncio.gather(*(play(env_id) for env_id in range(number)))
    return number * ROUNDS / (time.perf_counter() - began)


async def by_aiohttp(url: str, number: int) -> float:
    """Return what aiohttp does with the same requests and nothing else."""
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:

        async def step(env_id: int) -> Any:
            async with session.post(f"{url}/step", json={"id": env_id, "action": "inventory"}) as response:
                return await response.json(content_type=None)

        return await tasks(number, step)


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
    arguments = [sys.executable, "-c", SERVER, str(DELAY)]
    with subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:  # noqa: S603
        if server.stdout is None or server.stdin is None:
            raise RuntimeError("the server has no pipes")
        url = f"http://127.0.0.1:{int(server.stdout.readline())}"
        rate = {
            "vector, 64": vector(url, 64),
            "vector, 256": vector(url, 256),
            "aiohttp, 256": asyncio.run(by_aiohttp(url, 256)),
            "httpx, 256": asyncio.run(by_httpx(url, 256)),
        }
        server.stdin.close()
    ratios = {
        "64 beside the ideal": {"ratio": round(rate["vector, 64"] / (64 / DELAY), 3), "bar": 0.9},
        "256 beside aiohttp": {"ratio": round(rate["vector, 256"] / rate["aiohttp, 256"], 3), "bar": 0.75},
        "256 beside httpx": {"ratio": round(rate["vector, 256"] / rate["httpx, 256"], 1), "bar": 15},
    }
    print(json.dumps({"steps_a_second": {name: round(each) for name, each in rate.items()}, **ratios}))


if __name__ == "__main__":
    main()
