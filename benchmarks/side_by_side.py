"""The speed of the vector environment compared with a bare client, raw aiohttp and one httpx client.

A server of TextCraft's wire that takes 50 ms for each step runs in its own process. The vector environment
steps 64, 256 and 1,024 environments in rounds, each as long as its slowest step; it also parses the agents'
replies and validates the server's responses. At 64 it is compared with two others in the same rounds, 64
requests at once and the next 64 when all have responses. One is aiohttp. The other is the limit, a client
that writes prepared bytes and looks for the end of the response, so that server and sockets take nearly all
of its time. At 256 and 1,024 its peers are tasks that wait only for the server, which is easier.

Each way is measured five times, interleaved, and its ratio to a peer is computed for each round; the bar is
for the median of the five. httpx takes most of a minute, so it is measured once, after the others. Before a
measurement, each environment makes one step that does not count, to open its connection. 1,024 connections
need more open files than many systems allow a process by default: the limit is raised for this process and
the server's. If it cannot be raised, an error reports it.

Prints JSON: steps per second, and the ratios. Run it with ``python benchmarks/side_by_side.py``.
"""

from __future__ import annotations

import asyncio
import json
import statistics
import time
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, TypeAlias

import aiohttp
import httpx
from _common import MEASUREMENTS, allow_open_files, at_least, interleave, ratios, report, slow_server, usually

from agentgym_gym import AgentGymVectorEnv

DELAY = 0.05  # seconds of a step on the server
REPLY = "Thought:\nI have a look at what I hold before I decide.\n\nAction:\ninventory"
STEPS = usually(20, quick=1)  # of each environment in a measurement
OPEN_FILES = 1024 + 128  # the connections, and a margin for other files

Step: TypeAlias = Callable[[int], Awaitable[Any]]
Play: TypeAlias = Callable[[int, int, Step], Awaitable[float]]


def vector(url: str, number: int) -> float:
    """Return the steps per second of `number` environments in rounds."""
    envs = AgentGymVectorEnv(number, "TextCraft", server=url, max_turns=None)
    envs.reset(options={"task_id": 0})
    envs.step([REPLY] * number)
    began = time.perf_counter()
    for _ in range(STEPS):
        *_, infos = envs.step([REPLY] * number)
    seconds = time.perf_counter() - began
    if "fault" in infos:
        raise RuntimeError(f"an environment failed: {infos['fault']}")
    envs.close()
    return number * STEPS / seconds


async def tasks(number: int, steps: int, step: Step) -> float:
    """Return the steps per second of `number` tasks, each of which waits only for its own response."""

    async def play(env_id: int) -> None:
        for _ in range(steps):
            await step(env_id)

    await asyncio.gather(*(step(env_id) for env_id in range(number)))
    began = time.perf_counter()
    await asyncio.gather(*(play(env_id) for env_id in range(number)))
    return number * steps / (time.perf_counter() - began)


async def rounds(number: int, steps: int, step: Step) -> float:
    """Return the steps per second of rounds in which all wait for the slowest."""
    await asyncio.gather(*(step(env_id) for env_id in range(number)))
    began = time.perf_counter()
    for _ in range(steps):
        await asyncio.gather(*(step(env_id) for env_id in range(number)))
    return number * steps / (time.perf_counter() - began)


async def by_aiohttp(url: str, number: int, play: Play = tasks) -> float:
    """Return the steps per second of aiohttp with the same requests and nothing else."""
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:

        async def step(env_id: int) -> Any:
            async with session.post(f"{url}/step", json={"id": env_id, "action": "inventory"}) as response:
                return await response.json(content_type=None)

        return await play(number, STEPS, step)


class _Bare(asyncio.Protocol):
    """A connection that counts responses by their fixed length."""

    def __init__(self, request: bytes) -> None:
        self._request = request
        self._transport: asyncio.Transport
        self._answered: asyncio.Future[None]

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport  # type: ignore[assignment]  # a stream transport

    def data_received(self, data: bytes) -> None:
        if data.endswith(b"}"):
            self._answered.set_result(None)

    def step(self) -> asyncio.Future[None]:
        """Send the request; the future is done when its response has arrived."""
        self._answered = asyncio.get_running_loop().create_future()
        self._transport.write(self._request)
        return self._answered

    def close(self) -> None:
        self._transport.close()


async def bare(url: str, number: int) -> float:
    """Return the steps per second of rounds that neither build requests nor parse responses."""
    host, _, port = url.removeprefix("http://").partition(":")
    connections = []
    for env_id in range(number):
        body = json.dumps({"id": env_id, "action": "inventory"}).encode()
        head = f"POST /step HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\n"
        request = head.encode() + b"Content-Length: %d\r\n\r\n" % len(body) + body
        make = partial(_Bare, request)
        connections.append((await asyncio.get_running_loop().create_connection(make, host, int(port)))[1])
    try:
        return await rounds(number, STEPS, lambda env_id: connections[env_id].step())
    finally:
        for connection in connections:
            connection.close()


async def by_httpx(url: str, number: int) -> float:
    """Return the steps per second of one shared client of httpx, which takes most of a minute."""
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=None)
    async with httpx.AsyncClient(limits=limits, timeout=300) as client:

        async def step(env_id: int) -> Any:
            response = await client.post(f"{url}/step", json={"id": env_id, "action": "inventory"})
            return response.json()

        return await tasks(number, STEPS, step)


def main() -> None:
    """Measure all ways with one server."""
    allow_open_files(OPEN_FILES)
    with slow_server(DELAY) as url:
        ways = {
            "vector_64": lambda: vector(url, 64),
            "bare_64_in_rounds": lambda: asyncio.run(bare(url, 64)),
            "aiohttp_64_in_rounds": lambda: asyncio.run(by_aiohttp(url, 64, rounds)),
            "vector_256": lambda: vector(url, 256),
            "aiohttp_256": lambda: asyncio.run(by_aiohttp(url, 256)),
            "vector_1024": lambda: vector(url, 1024),
            "aiohttp_1024": lambda: asyncio.run(by_aiohttp(url, 1024)),
        }
        rates = interleave(ways, MEASUREMENTS)
        rates["httpx_256"] = [asyncio.run(by_httpx(url, 256))] * MEASUREMENTS
    report(
        benchmark="side_by_side",
        measurements=MEASUREMENTS,
        steps_a_second={name: round(statistics.median(each)) for name, each in rates.items()},
        share_of_the_limit_64=at_least(ratios(rates["vector_64"], rates["bare_64_in_rounds"]), 0.87),
        beside_aiohttp_64_in_rounds=at_least(ratios(rates["vector_64"], rates["aiohttp_64_in_rounds"]), 1),
        beside_aiohttp_256=at_least(ratios(rates["vector_256"], rates["aiohttp_256"]), 0.75),
        beside_httpx_256=at_least(ratios(rates["vector_256"], rates["httpx_256"]), 15),
        beside_aiohttp_1024=at_least(ratios(rates["vector_1024"], rates["aiohttp_1024"]), 0.75),
    )


if __name__ == "__main__":
    main()
