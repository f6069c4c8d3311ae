"""A step, the start and the memory of the local server of SciWorld, beside the package `scienceworld` itself.

Both play the same actions of the same tasks, in turns: the package in this process, as AgentGym's server
does, and the server over HTTP. Each environment of the package is a Java process. Those of the server share
one, whose growth by 64 environments is measured. Memory is the proportional set size (PSS); only Linux
reports it.

Prints JSON: the medians, and each ratio with its target. Run it with ``python benchmarks/sciworld.py``.
"""

from __future__ import annotations

import statistics
import time
import warnings
from pathlib import Path
from typing import Any

import httpx
from _common import at_most, report, usually
from scienceworld import ScienceWorldEnv

from agentgym_gym.envs.sciworld_tasks import task_of
from agentgym_gym.local_servers import LocalServer

TASKS = usually((449, 1440, 2644, 2936, 3956), quick=(2936,))
ENVS = usually(64, quick=4)
ACTIONS = ("open door to kitchen", "go to kitchen", "look around", "open cupboard", "wait1", "inventory")


class Server:
    """The local server, with one environment."""

    def __init__(self, url: str) -> None:
        self._client = httpx.Client(base_url=url, timeout=300)
        self._id = self._post("create")["id"]

    def reset(self, task_id: int) -> None:
        """Start a task."""
        self._post("reset", id=self._id, data_idx=task_id)

    def step(self, action: str) -> None:
        """Play an action."""
        self._post("step", id=self._id, action=action)

    def _post(self, route: str, **body: Any) -> Any:
        return self._client.post(route, json=body).json()


class Package:
    """One environment of the package."""

    def __init__(self) -> None:
        self._env = ScienceWorldEnv()

    def reset(self, task_id: int) -> None:
        """Start a task."""
        task = task_of(task_id)
        self._env.load(task.kind, task.variation)
        self._env.step("look around")

    def step(self, action: str) -> None:
        """Play an action."""
        self._env.step(action)

    @property
    def pid(self) -> int:
        """The id of its Java process."""
        pid: int = self._env._gateway.java_process.pid  # noqa: SLF001 - the package does not show it
        return pid

    def close(self) -> None:
        """End the process."""
        self._env.close()


def timed(player: Server | Package, task_id: int) -> list[float]:
    """Play the actions in a task; return the milliseconds of each."""
    player.reset(task_id)
    times = []
    for action in ACTIONS:
        began = time.perf_counter()
        player.step(action)
        times.append(1000 * (time.perf_counter() - began))
    return times


def pss(process: int) -> float:
    """Return the proportional set size of a process in MB."""
    lines = Path(f"/proc/{process}/smaps_rollup").read_text("utf-8").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("Pss:")) / 1024


def java_of(server: LocalServer) -> int:
    """Return the Java process that a server started."""
    process = server.process.pid if server.process is not None else 0
    for stat in Path("/proc").glob("[0-9]*/stat"):
        head, _, tail = stat.read_text("ascii", errors="replace").rpartition(")")
        if head.endswith("(java") and int(tail.split()[1]) == process:
            return int(stat.parent.name)
    raise RuntimeError("the server has started no Java")


def main() -> None:
    """Measure both."""
    warnings.simplefilter("ignore", ResourceWarning)  # the package leaves its connections to Java open
    server = LocalServer("sciworld")
    package = None
    try:
        url = server.start()
        began = time.perf_counter()
        ours = Server(url)
        ours.reset(TASKS[0])
        started = time.perf_counter() - began
        began = time.perf_counter()
        package = Package()
        package.reset(TASKS[0])
        package_started = time.perf_counter() - began
        times: dict[str, list[float]] = {"ours": [], "package": []}
        for task_id in TASKS:
            times["ours"] += timed(ours, task_id)
            times["package"] += timed(package, task_id)
        java = java_of(server)
        before = pss(java)
        others = [Server(url) for _ in range(2 * ENVS)][::2]  # every second is in another process
        for number, other in enumerate(others):
            other.reset(TASKS[number % len(TASKS)])
        added = (pss(java) - before) / ENVS
        step, package_step = (statistics.median(times[name]) for name in ("ours", "package"))
        report(
            benchmark="sciworld",
            step_ms=round(step, 2),
            package_step_ms=round(package_step, 2),
            step=at_most([step / package_step], 0.5),
            first_reset_seconds=round(started, 2),
            package_first_reset_seconds=round(package_started, 2),
            mb_for_each_environment=round(added, 2),
            package_mb_for_each_environment=round(pss(package.pid), 1),
            memory=at_most([added / pss(package.pid)], 0.1),
        )
    finally:
        if package is not None:
            package.close()
        server.stop()


if __name__ == "__main__":
    main()
