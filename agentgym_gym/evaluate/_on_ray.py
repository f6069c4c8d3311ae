"""Distributes episodes over the machines of a Ray cluster: workers in remote processes.

::

    with RayCluster("auto", concurrency=256) as cluster:
        await play_jobs(jobs, concurrency=256, make_worker=cluster.worker)

The runner, the run folder and the metrics stay in this process. Ray ships the functions that make
environments and agents. This library and all modules that these functions import must be installed on each
machine.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import socket
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from agentgym_gym.errors import AgentGymError, MissingExtra, SetupError
from agentgym_gym.evaluate._episode_workers import Job, LocalEpisodeWorker, Servers

if TYPE_CHECKING:
    from typing_extensions import Self

    from agentgym_gym.rollout._records import EpisodeRecord

__all__ = ["RayCluster", "RayEpisodeWorker", "connect_to_ray", "error_of"]

_WORKERS_EACH = 32
"""Workers per process. An event loop could serve more, but oracles and parsers use CPU time."""

_CONNECT_SECONDS = 10.0

_TRIES = 3
"""Attempts to play an episode if its process dies."""


class RayCluster:
    """Processes on a Ray cluster that play episodes; a context manager.

    Args:
        address: The address of an existing cluster: ``auto``, ``HOST:PORT`` or ``ray://HOST:PORT``; ``local``
            starts a cluster on this machine.
        concurrency: Concurrent episodes. The cluster starts one process for every 32 of them, but not more
            than it has CPUs.
        variables: Environment variables for environments and agents, in addition to those whose names start
            with ``AGENTGYM_``. They are passed as arguments, not through Ray's settings, which Ray displays.

    Raises:
        MissingExtra: The package ``ray`` is missing.
        SetupError: There is no cluster at the address.
    """

    def __init__(
        self, address: str = "auto", *, concurrency: int = 16, variables: Mapping[str, str] | None = None
    ) -> None:
        self._ray, self._began = connect_to_ray(address)
        own = {name: value for name, value in os.environ.items() if name.startswith("AGENTGYM_")}
        self._variables = {**own, **(variables or {})}
        cpus = int(self._ray.cluster_resources().get("CPU", 1))
        self._hosts = [self._new_host() for _ in range(min(max(1, cpus), -(-concurrency // _WORKERS_EACH)))]
        self._next = itertools.cycle(range(len(self._hosts)))
        self._ids = itertools.count()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for host in self._hosts:
            self._ray.kill(host)
        if self._began:
            self._ray.shutdown()

    def worker(self, job: Job) -> RayEpisodeWorker:
        """Return a worker on one of the processes, round-robin."""
        return RayEpisodeWorker(self, job, next(self._next), next(self._ids))

    def host(self, number: int) -> Any:
        """Return the process with this number."""
        return self._hosts[number]

    def replace(self, number: int, dead: Any) -> None:
        """Replace a dead process, unless it has already been replaced."""
        if self._hosts[number] is dead:
            self._hosts[number] = self._new_host()

    @property
    def died(self) -> type[Exception]:
        """The error type of a dead process."""
        error: type[Exception] = self._ray.exceptions.RayActorError
        return error

    @property
    def failed(self) -> tuple[type[Exception], ...]:
        """The error types of failed calls to a process."""
        found = self._ray.exceptions
        return (found.RayTaskError, found.RaySystemError)

    def _new_host(self) -> Any:
        host = self._ray.remote(num_cpus=1, max_concurrency=4 * _WORKERS_EACH)(_Host)
        return host.remote(self._variables)


def connect_to_ray(address: str) -> tuple[Any, bool]:
    """Connect this process to a Ray cluster.

    Args:
        address: As for `RayCluster`.

    Raises:
        MissingExtra: The package ``ray`` is missing.
        SetupError: There is no cluster at the address.

    Returns:
        The module ``ray``, and whether this process was not connected before.
    """
    try:
        import ray  # noqa: PLC0415 - an extra
    except ImportError:
        raise MissingExtra("A Ray cluster", extra="ray", module="ray") from None
    _require_listener(address)
    new = not ray.is_initialized()
    try:
        ray.init(address=address, ignore_reinit_error=True, log_to_driver=False)
    except (ConnectionError, ValueError, RuntimeError) as error:
        raise SetupError(f"there is no Ray cluster at {address!r:.200}: {error}") from error
    return ray, new


def error_of(error: Exception) -> AgentGymError:
    """Return the error of this library that a failed call on a machine of a cluster had, or one for it."""
    cause = getattr(error, "cause", error)
    if isinstance(cause, AgentGymError):
        return cause
    lines = str(cause).strip().splitlines()
    return SetupError(
        f"cannot use the Ray cluster: {lines[0] if lines else type(cause).__name__}; install the packages of "
        "the environments, agents and servers on each of its machines"
    )


def _require_listener(address: str) -> None:
    """Check that the address of a cluster accepts connections, because ray itself retries for minutes.

    Raises:
        SetupError: The address accepts no connection.
    """
    host, colon, port = address.rpartition("://")[2].rpartition(":")
    if not colon or not port.isdecimal():
        return  # "auto" and "local", which ray finds or starts
    try:
        socket.create_connection((host.strip("[]"), int(port)), _CONNECT_SECONDS).close()
    except (OSError, OverflowError) as error:
        raise SetupError(f"there is no Ray cluster at {address!r:.200}: {error}") from None


class RayEpisodeWorker:
    """A worker in a process of a cluster.

    Args:
        cluster: The cluster.
        job: The job whose episodes the worker plays.
        number: The number of the process.
        name: The unique number of this worker.
    """

    def __init__(self, cluster: RayCluster, job: Job, number: int, name: int) -> None:
        self.job = job
        self._cluster = cluster
        self._number = number
        self._name = name
        self._host: Any = None  # the process in which the worker is open

    async def play(self, task_id: int, sample: int) -> EpisodeRecord:
        """Play an episode, and retry in a new process if the process dies.

        Raises:
            SetupError: The task cannot be played until the setup is fixed, or every attempt's process died.
        """
        died: Exception | None = None
        for _ in range(_TRIES):
            host = self._cluster.host(self._number)
            try:
                if self._host is not host:
                    # The episodes and records of the job stay in this process.
                    job = replace(self.job, episodes=(), on_episode=_nothing, servers=Servers())
                    await host.open.remote(self._name, job)
                    self._host = host
                record: EpisodeRecord = await host.play.remote(self._name, task_id, sample)
            except self._cluster.died as error:
                died = error
                self._cluster.replace(self._number, host)
            except self._cluster.failed as error:
                raise error_of(error) from error
            else:
                return record
        raise SetupError(
            f"processes of the Ray cluster exited {_TRIES} times in one episode: {died}; see Ray's logs"
        ) from died

    async def close(self) -> None:
        """Close the environment and the agent, even during an abandoned episode."""
        if self._host is not None:
            with contextlib.suppress(self._cluster.died):  # and the worker with it
                await self._host.close.remote(self._name)


class _Host:
    """The Ray actor in each process of a cluster.

    Args:
        variables: Environment variables to set in the process.
    """

    def __init__(self, variables: Mapping[str, str]) -> None:
        os.environ.update(variables)
        self._workers: dict[int, LocalEpisodeWorker] = {}
        self._playing: dict[int, Any] = {}

    async def open(self, name: int, job: Job) -> None:
        self._workers[name] = LocalEpisodeWorker(job)

    async def play(self, name: int, task_id: int, sample: int) -> EpisodeRecord:
        import asyncio  # noqa: PLC0415 - importing the library must be cheap

        playing = asyncio.ensure_future(self._workers[name].play(task_id, sample))
        self._playing[name] = playing
        try:
            return await playing
        finally:
            del self._playing[name]

    async def close(self, name: int) -> None:
        import asyncio  # noqa: PLC0415 - importing the library must be cheap

        if name in self._playing:
            self._playing[name].cancel()
            await asyncio.wait({self._playing[name]})
        await self._workers.pop(name).close()


def _nothing(_: object) -> None:
    """Ignore a record, because the local process handles it."""
