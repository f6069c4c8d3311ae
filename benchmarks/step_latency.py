"""What a step costs: ``env.step`` beside bare ``http.client`` and beside ``requests.post``, in one run.

Bare is what needs least: one kept-alive connection of the standard library. ``requests.post`` for each call,
with a new connection each time, is how AgentGym's own clients do it. All play on the same local TextCraft
server. ``env.step`` takes turns with bare step by step, so that whatever else the machine does slows both
alike, and with ``requests`` twenty by twenty: the server has still to close each of its connections when the
reply is there, which would slow whoever comes next. ``env.step`` reads a reply of a model besides, and checks
what the server says.

Prints JSON: the medians in microseconds and their ratios. Run it by ``python benchmarks/step_latency.py``.
"""

from __future__ import annotations

import http.client
import json
import statistics
from collections.abc import Callable, Mapping
from contextlib import closing
from typing import Any
from urllib.parse import urlsplit

import requests
from _common import at_least, at_most, report, seconds, usually

from agentgym_gym import AgentGymEnv
from agentgym_gym.servers.local import LocalServer

STEPS = usually(2_000, quick=20)


def main() -> None:
    """Measure and print."""
    server = LocalServer("textcraft")
    env = AgentGymEnv("TextCraft", server=server.start(), max_turns=None)
    env.reset(seed=0)
    with closing(http.client.HTTPConnection(urlsplit(server.url).netloc)) as connection:
        ways: dict[str, Callable[[], object]] = {
            "env_step": lambda: env.step("Thought:\nx\n\nAction:\ninventory"),
            "http_client": by_http_client(connection),
            "requests": by_requests(server.url),
        }
        alone, beside = measure(ways, "http_client", 1), measure(ways, "requests", 20)
    env.close()
    server.stop()
    report(
        benchmark="step_latency",
        steps=STEPS,
        median_us={"beside_http_client": microseconds(alone), "beside_requests": microseconds(beside)},
        beside_http_client=at_most(alone["env_step"] / alone["http_client"], 1.8),
        faster_than_requests=at_least(beside["requests"] / beside["env_step"], 1.8),
    )


def measure(ways: Mapping[str, Callable[[], object]], peer: str, at_once: int) -> dict[str, float]:
    """Return the median seconds of a step of ours and of a peer, so many at once taking turns."""
    took: dict[str, list[float]] = {"env_step": [], peer: []}
    for _ in range(STEPS // at_once):
        for name, each in took.items():
            each += [seconds(ways[name]) for _ in range(at_once)]
    return {name: statistics.median(each) for name, each in took.items()}


def microseconds(medians: Mapping[str, float]) -> dict[str, float]:
    """Return the same, as it is printed."""
    return {name: round(each * 1e6, 1) for name, each in medians.items()}


def by_http_client(connection: http.client.HTTPConnection) -> Callable[[], object]:
    """Return what sends one step and reads its reply, with nothing but the standard library."""

    def post(path: str, body: object) -> dict[str, object]:
        connection.request("POST", path, json.dumps(body).encode(), {"Content-Type": "application/json"})
        reply: dict[str, object] = json.loads(connection.getresponse().read())
        return reply

    env_id = post("/create", {})["id"]
    return lambda: post("/step", {"id": env_id, "action": "inventory"})


def by_requests(url: str) -> Callable[[], object]:
    """Return what does the same by a ``requests.post`` that stands by itself."""

    def post(path: str, body: dict[str, Any]) -> dict[str, object]:
        reply: dict[str, object] = requests.post(url + path, json=body, timeout=300).json()
        return reply

    env_id = post("/create", {})["id"]
    return lambda: post("/step", {"id": env_id, "action": "inventory"})


if __name__ == "__main__":
    main()
