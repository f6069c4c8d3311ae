"""The time of a step: ``env.step`` compared with bare ``http.client`` and with ``requests.post``.

Bare is the minimum: one kept-alive connection of the standard library. AgentGym's own clients use
``requests.post`` for each call, with a new connection each time. All play on the same local TextCraft server.
``env.step`` is interleaved with bare step by step, so that other load on the machine slows both equally, and
with ``requests`` in groups of twenty: after each response the server still has to close the connection, which
would slow the next request. ``env.step`` also parses a model's reply, and validates the server's response.

A measurement is the ratio of two medians. There are five, and the bar is for the median of these.

Prints JSON: the medians in microseconds and their ratios. Run it with ``python benchmarks/step_latency.py``.
"""

from __future__ import annotations

import http.client
import json
import statistics
from collections.abc import Callable, Mapping
from contextlib import closing
from functools import partial
from itertools import chain
from typing import Any, TypeAlias
from urllib.parse import urlsplit

import requests
from _common import MEASUREMENTS, at_least, at_most, interleave, ratios, report, seconds, usually

from agentgym_gym import AgentGymEnv
from agentgym_gym.local_servers import LocalServer

STEPS = usually(400, quick=20)  # in each measurement

Step: TypeAlias = Callable[[], object]


def main() -> None:
    """Measure and print."""
    server = LocalServer("textcraft")
    env = AgentGymEnv("TextCraft", server=server.start(), max_turns=None)
    env.reset(seed=0)
    ours = partial(env.step, "Thought:\nx\n\nAction:\ninventory")
    with closing(http.client.HTTPConnection(urlsplit(server.url).netloc)) as connection:
        bare = measure({"env_step": ours, "http_client": by_http_client(connection)}, 1)
        fresh = measure({"env_step": ours, "requests": by_requests(server.url)}, 20)
    env.close()
    server.stop()
    report(
        benchmark="step_latency",
        measurements=MEASUREMENTS,
        steps_each=STEPS,
        median_us={"beside_http_client": microseconds(bare), "beside_requests": microseconds(fresh)},
        beside_http_client=at_most(ratios(bare["env_step"], bare["http_client"]), 1.2),
        faster_than_requests=at_least(ratios(fresh["requests"], fresh["env_step"]), 1.8),
    )


def measure(ways: Mapping[str, Step], at_once: int) -> dict[str, list[float]]:
    """Return the median seconds of a step in each measurement, interleaved in groups of `at_once`."""

    def some(step: Step) -> list[float]:
        return [seconds(step) for _ in range(at_once)]

    def once() -> dict[str, float]:
        took = interleave({name: partial(some, step) for name, step in ways.items()}, STEPS // at_once)
        return {name: statistics.median(chain.from_iterable(each)) for name, each in took.items()}

    medians = [once() for _ in range(MEASUREMENTS)]
    return {name: [each[name] for each in medians] for name in ways}


def microseconds(medians: Mapping[str, list[float]]) -> dict[str, float]:
    """Return the median of the measurements, in the unit of the output."""
    return {name: round(statistics.median(each) * 1e6, 1) for name, each in medians.items()}


def by_http_client(connection: http.client.HTTPConnection) -> Step:
    """Return a function that sends one step and reads its response, with only the standard library."""

    def post(path: str, body: object) -> dict[str, object]:
        connection.request("POST", path, json.dumps(body).encode(), {"Content-Type": "application/json"})
        reply: dict[str, object] = json.loads(connection.getresponse().read())
        return reply

    env_id = post("/create", {})["id"]
    return lambda: post("/step", {"id": env_id, "action": "inventory"})


def by_requests(url: str) -> Step:
    """Return a function that does the same with a separate ``requests.post``."""

    def post(path: str, body: dict[str, Any]) -> dict[str, object]:
        reply: dict[str, object] = requests.post(url + path, json=body, timeout=300).json()
        return reply

    env_id = post("/create", {})["id"]
    return lambda: post("/step", {"id": env_id, "action": "inventory"})


if __name__ == "__main__":
    main()
