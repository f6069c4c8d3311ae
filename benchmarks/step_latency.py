"""What a step costs: ``env.step`` beside bare ``http.client`` and beside ``requests.post``, in one run.

Bare is what needs least: one kept-alive connection of the standard library. ``requests.post`` for each call,
with a new connection each time, is how AgentGym's own clients do it. The three take turns on the same local
TextCraft server, in an order that is drawn each time, so that whatever else the machine does slows all alike.
``env.step`` reads a reply of a model besides, and checks what the server says.

Prints JSON: the medians in microseconds and their ratios. Run it by ``python benchmarks/step_latency.py``.
"""

from __future__ import annotations

import http.client
import json
import random
import statistics
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

import requests
from _common import at_least, at_most, report, seconds

from agentgym_gym import AgentGymEnv
from agentgym_gym.servers.local import LocalServer

STEPS = 2_000


def main() -> None:
    """Measure and print."""
    server = LocalServer("textcraft")
    env = AgentGymEnv("TextCraft", server=server.start(), max_turns=None)
    env.reset(seed=0)
    roads: dict[str, Callable[[], object]] = {
        "env_step": lambda: env.step("Thought:\nx\n\nAction:\ninventory"),
        "http_client": by_http_client(server.url),
        "requests": by_requests(server.url),
    }
    took: dict[str, list[float]] = {name: [] for name in roads}
    draw = random.Random(0)  # noqa: S311 - no secret
    for _ in range(STEPS):
        for name in draw.sample(list(roads), len(roads)):
            took[name].append(seconds(roads[name]))
    env.close()
    server.stop()
    median = {name: statistics.median(each) for name, each in took.items()}
    report(
        benchmark="step_latency",
        steps=STEPS,
        median_us={name: round(each * 1e6, 1) for name, each in median.items()},
        beside_http_client=at_most(median["env_step"] / median["http_client"], 1.8),
        faster_than_requests=at_least(median["requests"] / median["env_step"], 1.8),
    )


def by_http_client(url: str) -> Callable[[], object]:
    """Return what sends one step and reads its reply, with nothing but the standard library."""
    connection = http.client.HTTPConnection(urlsplit(url).netloc)

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
