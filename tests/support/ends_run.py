"""A program: end a run of workers as verl's, real actors of Ray, in the folder that is given.

It prints how many groups of episodes were cancelled, and the names of groups that ended before.
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

import ray

from verl_bridge._run.run_checks import close_environments


class Worker:
    """Has the tasks of verl's worker: a group of episodes each, whose end closes their environments."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.background_tasks = folder, set()

    async def start(self, *names: str) -> None:
        for name in names:
            self.background_tasks.add(asyncio.create_task(self._play(name)))
        await asyncio.sleep(0.1)

    async def _play(self, name: str) -> None:
        try:
            await asyncio.sleep(3600)
        finally:
            await asyncio.sleep(0.5)  # as a request to a server
            (self.folder / name).touch()


def main() -> None:
    folder = Path(sys.argv[1])
    ray.init(num_cpus=1, include_dashboard=False, log_to_driver=False)
    actor = ray.remote(Worker).options(num_cpus=0)
    workers = [actor.remote(folder) for _ in range(2)]
    ray.get([workers[0].start.remote("a", "b"), workers[1].start.remote("c")])
    dead = actor.remote(folder)
    ray.kill(dead)
    cancelled = close_environments([*workers, dead])
    closed = sorted(file.name for file in folder.iterdir())
    result = {"cancelled": cancelled, "closed": closed, "again": close_environments(workers)}
    sys.stdout.write(json.dumps(result) + "\n")


if __name__ == "__main__":
    main()
