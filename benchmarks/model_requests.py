"""Requests of `ChatAgent` compared with the ideal, httpx, the bare ``openai`` client and bare aiohttp.

A model server runs in its own process. First it takes 10 s for each completion, and 1,000 agents play five
turns at once, each in its own task. The ideal is 50 s, the time of the server only; making, connecting and
closing the agents counts as overhead.

Then the server responds immediately, and the limit is this process, on one core. Agents, each with its own
connection, are compared with agents that have an httpx client each, with tasks that share one client of
``openai``, and with tasks on one session of aiohttp. All send the same bodies and read the same JSON: 64 at
once, and 1,000 at once. An agent also keeps a conversation, but sends only its last turn, so that all
requests are of one size. Each way is measured three times, interleaved, and the ratio is computed for each
round.

The benchmark also counts the Python calls of a request, with `sys.setprofile` over 64 tasks: calls of
functions written in Python, including the event loop's.

Prints JSON: requests per second, calls, and the ratios. Run it with ``python benchmarks/model_requests.py``.
"""

from __future__ import annotations

import asyncio
import statistics
import sys
import time
from collections.abc import Awaitable, Callable
from typing import Any

import aiohttp
import httpx
import openai
from _common import allow_open_files, at_least, interleave, ratios, report, seconds, slow_server, usually

from agentgym_gym.evaluate import ChatAgent

AT_ONCE = usually(1_000, quick=20)
TURNS = 5
SECONDS = usually(10.0, quick=0.2)  # of a completion on the slow server
REQUESTS = usually(3_000, quick=100)  # in one measurement on the fast server
MEASUREMENTS = usually(3, quick=1)
OPEN_FILES = 2 * 1024

PROMPT = "You craft items. " * 100
OBSERVATION = "Crafting commands: craft 4 oak planks using 1 oak logs. " * 10


class Env:
    """The part of an environment that an agent uses."""

    spec = None
    system_prompt = PROMPT


async def play(agent: ChatAgent, turns: int) -> None:
    """Play one episode with an agent."""
    await agent.reset(Env(), OBSERVATION, {"task_id": 0})
    for _ in range(turns):
        reply = await agent.act(OBSERVATION, {})
        if reply.action is None or reply.step["retries"]:
            raise RuntimeError(f"the model's server failed: {reply}")


async def many(
    url: str, at_once: int, turns: int, http_client: Callable[[], httpx.AsyncClient] | None = None
) -> None:
    """Play with `at_once` agents at once."""
    first = ChatAgent(
        "m",
        base_url=f"{url}/v1",
        history="turns:1",
        seed=0,
        sampling={"temperature": 0.0},
        http_client=http_client,
    )
    agents = [first.clone() for _ in range(at_once)]
    await asyncio.gather(*(play(agent, turns) for agent in agents))
    await asyncio.gather(*(agent.close() for agent in agents))


async def by_httpx(url: str, at_once: int, turns: int) -> None:
    """Play over plain httpx, with one client per agent."""
    context = httpx.create_ssl_context()
    await many(url, at_once, turns, lambda: httpx.AsyncClient(verify=context, trust_env=False))


def body() -> dict[str, Any]:
    """Return the request body of an agent from its second turn on."""
    return {
        "model": "m",
        "messages": [
            {"role": "system", "content": PROMPT},
            {"role": "user", "content": OBSERVATION},
            {"role": "assistant", "content": "Thought:\nI look.\n\nAction:\ninventory"},
            {"role": "user", "content": OBSERVATION},
        ],
        "temperature": 0.0,
        "seed": 1,
    }


async def tasks(at_once: int, turns: int, send: Callable[[], Awaitable[str]]) -> None:
    """Run `at_once` tasks at once, each with one request after another."""

    async def one() -> None:
        for _ in range(turns):
            await send()

    await asyncio.gather(*(one() for _ in range(at_once)))


async def by_openai(url: str, at_once: int, turns: int) -> None:
    """Make the same requests with one client of ``openai``."""
    async with openai.AsyncOpenAI(base_url=f"{url}/v1", api_key="EMPTY", max_retries=0) as client:

        async def send() -> str:
            completion = await client.chat.completions.create(**body())
            return str(completion.choices[0].message.content)

        await tasks(at_once, turns, send)


async def by_aiohttp(url: str, at_once: int, turns: int) -> None:
    """Make the same requests with one session of aiohttp."""
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:

        async def send() -> str:
            async with session.post(f"{url}/v1/chat/completions", json=body()) as response:
                found = await response.json()
                return str(found["choices"][0]["message"]["content"])

        await tasks(at_once, turns, send)


Way = Callable[[str, int, int], Awaitable[None]]
WAYS: dict[str, Way] = {"agents": many, "httpx": by_httpx, "openai": by_openai, "aiohttp": by_aiohttp}


def rates(url: str, at_once: int) -> dict[str, list[float]]:
    """Return the requests per second of each way."""
    turns = max(REQUESTS // at_once, 2)

    def rate(way: Way) -> float:
        began = time.perf_counter()
        asyncio.run(_whole(way(url, at_once, turns)))
        return at_once * turns / (time.perf_counter() - began)

    return interleave({name: lambda way=way: rate(way) for name, way in WAYS.items()}, MEASUREMENTS)  # type: ignore[misc]


def calls(url: str, way: Way) -> int:
    """Return the Python calls of each request, as the difference of two runs, which excludes connecting."""
    counted = 0

    def count(_frame: object, event: str, _argument: object) -> None:
        nonlocal counted
        counted += event == "call"

    tasks_at_once, numbers = 64, list[int]()
    for turns in (2, 12):
        counted = 0
        sys.setprofile(count)
        try:
            asyncio.run(_whole(way(url, tasks_at_once, turns)))
        finally:
            sys.setprofile(None)
        numbers.append(counted)
    return round((numbers[1] - numbers[0]) / (10 * tasks_at_once))


async def _whole(awaited: Awaitable[None]) -> None:
    await awaited


def main() -> None:
    """Measure and report."""
    allow_open_files(OPEN_FILES)
    with slow_server(SECONDS) as url:
        taken = seconds(lambda: asyncio.run(many(url, AT_ONCE, TURNS)))
    with slow_server(0.0) as url:
        few, all_at_once = rates(url, min(64, AT_ONCE)), rates(url, AT_ONCE)
        counted = {name: calls(url, way) for name, way in WAYS.items()}
    report(
        benchmark="model_requests",
        at_once=AT_ONCE,
        requests_per_second={name: round(statistics.median(found)) for name, found in few.items()},
        requests_per_second_all_at_once={
            name: round(statistics.median(found)) for name, found in all_at_once.items()
        },
        python_calls=counted,
        share_of_the_ideal=at_least([TURNS * SECONDS / taken], 0.9),
        beside_openai=at_least(ratios(few["agents"], few["openai"]), 1.0),
        beside_openai_all_at_once=at_least(ratios(all_at_once["agents"], all_at_once["openai"]), 1.0),
        beside_httpx=at_least(ratios(few["agents"], few["httpx"]), 1.0),
        beside_httpx_all_at_once=at_least(ratios(all_at_once["agents"], all_at_once["httpx"]), 1.0),
        beside_aiohttp=round(statistics.median(ratios(few["agents"], few["aiohttp"])), 3),
    )


if __name__ == "__main__":
    main()
