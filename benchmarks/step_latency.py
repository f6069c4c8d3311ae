"""What a step costs: ``env.step`` beside bare ``http.client`` and beside ``requests.post``, in one run.

Bare is what needs least: one kept-alive connection of the standard library. ``requests.post`` for each call,
with a new connection each time, is how AgentGym's own clients do it. All play on the same local TextCraft
server. ``env.step`` takes turns with bare step by step, so that whatever else the machine does slows both
alike, and with ``requests`` twenty by twenty: the server has still to close each of its connections when the
reply is there, which would slow whoever comes next. ``env.step`` reads a reply of a model besides, and checks
what the server says.

A measurement is the ratio of two medians. There are five, and the median of these is held against the bar.

Prints JSON: the medians in microseconds and their ratios. Run it by ``python benchmarks/step_latency.py``.
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
from _common import MEASUREMENTS, at_least, at_most, in_turns, ratios, report, seconds, usually

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
        each_anew = measure({"env_step": ours, "requests": by_requests(server.url)}, 20)
    env.close()
    server.stop()
    report(
        benchmark="step_latency",
        measurements=MEASUREMENTS,
        steps_each=STEPS,
        median_us={"beside_http_client": microseconds(bare), "beside_requests": microseconds(each_anew)},
        beside_http_client=at_most(ratios(bare["env_step"], bare["http_client"]), 1.2),
        faster_than_requests=at_least(ratios(each_anew["requests"], each_anew["env_step"]), 1.8),
    )


def measure(ways: Mapping[str, Step], at_once: int) -> dict[str, list[float]]:
    """Return the median seconds of a step in each measurement, where so many at once take turns."""

    def some(step: Step) -> list[float]:
        return [seconds(step) for _ in range(at_once)]

    def once() -> dict[str, float]:
        took = in_turns({name: partial(some, step) for name, step in ways.items()}, STEPS // at_once)
        return {name: statistics.median(chain.from_iterable(each)) for name, each in took.items()}

    medians = [once() for _ in range(MEASUREMENTS)]
    return {name: [each[name] for each in medians] for name in ways}


def microseconds(medians: Mapping[str, list[float]]) -> dict[str, float]:
    """Return the median of the measurements, as it is printed."""
    return {name: round(statistics.median(each) * 1e6, 1) for name, each in medians.items()}


def by_http_client(connection: http.client.HTTPConnection) -> Step:
    """Return what sends one step and reads its reply, with nothing but the standard library."""

    def post(path: str, body: object) -> dict[str, object]:
        connection.request("POST", path, json.dumps(body).encode(), {"Content-Type": "application/json"})
        reply: dict[str, object] = json.loads(connection.getresponse().read())
        return reply

    env_id = post("/create", {})["id"]
    return lambda: post("/step", {"id": env_id, "action": "inventory"})


def by_requests(url: str) -> Step:
    """Return what does the same by a ``requests.post`` that stands by itself."""

    def post(path: str, body: dict[str, Any]) -> dict[str, object]:
        reply: dict[str, object] = requests.post(url + path, json=body, timeout=300).json()
        return reply

    env_id = post("/create", {})["id"]
    return lambda: post("/step", {"id": env_id, "action": "inventory"})


if __name__ == "__main__":
    main()
