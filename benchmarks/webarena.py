"""The speed of the local server of WebArena: steps per second of eight and of 32 episodes at once.

The oracle plays tasks of all templates. A step is an action in the browser and the page as text after it; the
time of resets counts too. Prints JSON: steps per second and its limit, the median milliseconds of a step, and
on Linux the processor time of a step in the server and in all processes of its browser; for WebArena also
the seconds by which eight pages whose scripts never end delay an action in a ninth environment. Without
Chromium, or the extra of a server, it prints the reason.

Run it with ``python benchmarks/webarena.py``.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import statistics
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import httpx
from _common import at_least, at_most, report, seconds, usually

from agentgym_gym import AsyncAgentGymEnv, find
from agentgym_gym.evaluate import evaluate_async, load_oracle
from agentgym_gym.local_servers import LocalServer, available

AT_ONCE = 8
TASKS = usually(96, quick=4)
LEAST = 10.0
"""Minimum steps per second on two cores; the project itself reports .68 with 16 clients."""

MANY, LEAST_SHARE = 32, 0.95
"""A number of clients, and the minimum share of the steps per second that eight clients get."""

MOST_DELAY = 1.0
"""Maximum seconds by which eight pages that hang delay an action elsewhere."""


def processor_seconds(root: int) -> float:
    """Return the processor time of a process and all below it, including those that ended; 0 if not Linux."""
    rows = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text("utf-8", "replace").rpartition(")")[2].split()
        except OSError:  # it ended meanwhile
            continue
        rows[int(path.parent.name)] = (int(fields[1]), sum(map(int, fields[11:15])))
    below = {root}
    while more := {pid for pid, (parent, _) in rows.items() if parent in below} - below:
        below |= more
    return sum(rows[pid][1] for pid in below if pid in rows) / os.sysconf("SC_CLK_TCK")


def measure(name: str) -> None:
    """Measure the server of an environment in a browser."""
    missing = available(name)
    if missing is not None:
        report(benchmark=name.lower(), skipped=missing)
        return
    environment = find(name)
    server = LocalServer(name.lower(), start_seconds=120)
    ids = [task for task in environment.task_ids if task not in environment.unwinnable]
    tasks = ids[:: max(1, len(ids) // TASKS)][:TASKS]
    try:
        env = partial(AsyncAgentGymEnv, name, server=server.start())
        oracle = partial(load_oracle, environment)
        asyncio.run(evaluate_async(env, oracle, [0], concurrency=1))  # starts the browser
        pid = server.process.pid if server.process is not None else 0
        used = processor_seconds(pid)
        rates, records = {}, []
        for clients in (AT_ONCE, MANY):
            began = time.perf_counter()
            played = asyncio.run(evaluate_async(env, oracle, tasks, concurrency=clients))
            rates[clients] = sum(record.turns for record in played) / (time.perf_counter() - began)
            records += played
        used = processor_seconds(pid) - used
    finally:
        server.stop()
    faulted = [record.task_id for record in records if not record.success]
    if faulted:
        raise RuntimeError(f"not won: {faulted}")
    steps = sum(record.turns for record in records)
    more = {} if name != "WebArena" else {"delay_by_hung_pages": at_most([hung_delay()], MOST_DELAY)}
    report(
        benchmark=name.lower(),
        at_once=AT_ONCE,
        steps=steps,
        step_ms=round(1000 * statistics.median(s["env_seconds"] for r in records for s in r.steps), 1),
        processor_ms_a_step=round(1000 * used / steps, 1),
        steps_a_second=at_least([rates[AT_ONCE]], LEAST),
        at_32_beside_8=at_least([rates[MANY] / rates[AT_ONCE]], LEAST_SHARE),
        **more,
    )


class Shop(BaseHTTPRequestHandler):
    """A site with a button whose script never ends."""

    def do_GET(self) -> None:
        """Answer with the page."""
        body = b'<title>Shop</title><button onclick="for (;;);">hang</button>'
        self.send_response(200)
        self.send_header("content-type", "text/html")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Print nothing."""


def hung_delay() -> float:
    """Return by how many seconds eight pages that hang delay an action in a ninth environment."""
    with (
        tempfile.TemporaryDirectory() as folder,
        ThreadingHTTPServer(("127.0.0.1", 0), Shop) as shop,
        ThreadPoolExecutor(AT_ONCE) as pool,
    ):
        threading.Thread(target=shop.serve_forever, daemon=True).start()
        task = {
            "task_id": 0,
            "sites": ["shopping"],
            "intent": "Look around",
            "start_url": "__SHOPPING__/",
            "eval": {"eval_types": ["string_match"], "reference_answers": {"exact_match": "7"}},
        }
        Path(folder, "test.raw.json").write_text(json.dumps([task]))
        sites = {"__SHOPPING__": f"http://127.0.0.1:{shop.server_port}"}
        Path(folder, "sites.json").write_text(json.dumps(sites))
        server = LocalServer("webarena", arguments=["--data", folder], start_seconds=120)
        try:
            with httpx.Client(base_url=server.start(), timeout=120) as client:
                hung, other = [started(client) for _ in range(AT_ONCE)], started(client)
                free = seconds(lambda: step(client, other, "scroll [down]"))
                waiting = [pool.submit(step, client, each, "click [2]") for each in hung]
                time.sleep(4)
                delayed = seconds(lambda: step(client, other, "scroll [down]"))
                if any(each.done() for each in waiting):
                    raise RuntimeError("the pages do not hang")
                server.stop()
                return delayed - free
        finally:
            server.stop()
            shop.shutdown()


def started(client: httpx.Client) -> int:
    """Return a new environment in which the task has started."""
    env: int = client.post("/create").json()["env_idx"]
    client.post("/reset", json={"env_idx": env, "seed": 0, "idx": 0})
    return env


def step(client: httpx.Client, env: int, action: str) -> None:
    """Play an action; an environment that hangs loses its server."""
    with contextlib.suppress(httpx.HTTPError):
        client.post("/step", json={"env_idx": env, "action": f"```{action}```"})


if __name__ == "__main__":
    measure("WebArena")
