"""The end of a run: the episodes that a worker still plays, in a real actor of Ray."""

from __future__ import annotations

import asyncio

import pytest

pytest.importorskip("verl", reason="verl is not installed: see docs/training/cpu.md")

import ray

from verl_bridge._run_end import close_environments


@pytest.fixture
def cluster():
    ray.init(num_cpus=1, include_dashboard=False, log_to_driver=False)
    yield
    ray.shutdown()


def worker_class():
    """Defined in a function, so that Ray sends it to its workers as a whole."""

    class Worker:
        """Has the tasks of verl's worker: a group of episodes each, whose end closes their environments."""

        def __init__(self, folder):
            self.folder, self.background_tasks = folder, set()

        async def start(self, *names):
            for name in names:
                self.background_tasks.add(asyncio.create_task(self._play(name)))
            self.background_tasks.add(done := asyncio.create_task(asyncio.sleep(0)))
            await done

        async def _play(self, name):
            try:
                await asyncio.sleep(3600)
            finally:
                await asyncio.sleep(0.5)  # as a request to a server
                (self.folder / name).touch()

    return ray.remote(Worker).options(num_cpus=0)


def test_environments_are_closed_before_the_run_ends(cluster, tmp_path):
    actor = worker_class()
    workers = [actor.remote(tmp_path) for _ in range(2)]
    ray.get([workers[0].start.remote("a", "b"), workers[1].start.remote("c")])
    dead = actor.remote(tmp_path)
    ray.kill(dead)
    assert close_environments([*workers, dead]) == 3
    assert {file.name for file in tmp_path.iterdir()} == {"a", "b", "c"}
    assert close_environments(workers) == 0
