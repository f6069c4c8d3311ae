"""What a step costs: ``env.step`` beside bare ``http.client`` on one kept-alive connection, in one run.

The two take turns on the same local server, so that whatever else the machine does slows both alike. Prints
JSON: the medians in microseconds and their ratio.

Run it by ``python benchmarks/step_latency.py``.
"""

from __future__ import annotations

import http.client
import json
import statistics
import time
from collections.abc import Callable
from urllib.parse import urlsplit

from agentgym_gym import AgentGymEnv
from agentgym_gym.servers.local import LocalServer

STEPS = 2_000


def main() -> None:
    """Measure and print."""
    server = LocalServer("textcraft")
    env = AgentGymEnv("TextCraft", server=server.start(), max_turns=None)
    env.reset(seed=0)
    bare = _bare_step(server.url)
    ours: list[float] = []
    theirs: list[float] = []
    for _ in range(STEPS):
        ours.append(_seconds(lambda: env.step("Thought:\nx\n\nAction:\ninventory")))
        theirs.append(_seconds(bare))
    env.close()
    server.stop()
    medians = statistics.median(ours), statistics.median(theirs)
    result = {
        "steps": STEPS,
        "env_step_us": round(medians[0] * 1e6, 1),
        "http_client_us": round(medians[1] * 1e6, 1),
        "ratio": round(medians[0] / medians[1], 2),
    }
    print(json.dumps(result))


def _bare_step(url: str) -> Callable[[], object]:
    """Return what sends one step and reads its reply, with nothing but the standard library."""
    connection = http.client.HTTPConnection(urlsplit(url).netloc)

    def post(path: str, body: object) -> dict[str, object]:
        connection.request("POST", path, json.dumps(body).encode(), {"Content-Type": "application/json"})
        reply: dict[str, object] = json.loads(connection.getresponse().read())
        return reply

    env_id = post("/create", {})["id"]
    return lambda: post("/step", {"id": env_id, "action": "inventory"})


def _seconds(act: Callable[[], object]) -> float:
    began = time.perf_counter()
    act()
    return time.perf_counter() - began


if __name__ == "__main__":
    main()
