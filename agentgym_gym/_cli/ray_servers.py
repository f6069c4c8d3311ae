"""Local servers on every machine of a Ray cluster: ``agentgym serve NAME --ray ADDRESS``."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from agentgym_gym.errors import SetupError
from agentgym_gym.evaluate._on_ray import connect_to_ray, error_of
from agentgym_gym.local_servers import LocalServer

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = ["RayServers", "serve_on_ray"]

CHECK_SECONDS = 2.0
"""How often the servers are checked, in seconds."""

START_SECONDS = 300.0
"""Seconds within which a server must start. Ray's processes have a low priority on a machine that trains."""


def serve_on_ray(
    cluster: str,
    name: str,
    *,
    port: int,
    per_machine: int,
    arguments: Sequence[str],
    print_line: Callable[[str], None],
) -> None:
    """Run servers on every machine of a Ray cluster until SIGINT or SIGTERM, which this process then handles.

    Args:
        cluster: The address of the cluster, as for `agentgym_gym.evaluate._on_ray.RayCluster`.
        name: As for `agentgym_gym.local_servers.LocalServer`.
        port: The port of the first server of each machine; 0 takes any free ones.
        per_machine: Servers on each machine, on consecutive ports.
        arguments: More command-line arguments of each server.
        print_line: Is called with each line for the user.

    Raises:
        MissingExtra: The package ``ray`` is missing.
        SetupError: There is no cluster at the address, a server cannot start, or no server is left.
    """
    with RayServers(cluster, name, port=port, per_machine=per_machine, arguments=arguments) as servers:
        stopped = threading.Event()
        for number in (signal.SIGINT, signal.SIGTERM):  # only now, since ray.init sets a handler of its own
            signal.signal(number, lambda *_: stopped.set())
        for url in servers.urls:
            print_line(f"serving {name} on {url}")
        print_line(f"all addresses: {','.join(servers.urls)}")
        while not stopped.wait(CHECK_SECONDS):
            for change in servers.check():
                print_line(change)
            if not servers.urls:
                raise SetupError("no server is left on the Ray cluster: see Ray's logs")


class RayServers:
    """Servers on every machine of a Ray cluster, which end with this process; a context manager.

    It uses the machines that the cluster has at the start. Ray counts no CPU for a server: on a cluster
    that a training has reserved, it would otherwise wait indefinitely.

    Args:
        cluster: As for `serve_on_ray`.
        name: As for `serve_on_ray`.
        port: As for `serve_on_ray`.
        per_machine: As for `serve_on_ray`.
        arguments: As for `serve_on_ray`.

    Raises:
        MissingExtra: The package ``ray`` is missing.
        SetupError: There is no cluster at the address, or a server cannot start.
    """

    def __init__(
        self, cluster: str, name: str, *, port: int = 0, per_machine: int = 1, arguments: Sequence[str] = ()
    ) -> None:
        self._ray, self._began = connect_to_ray(cluster)
        machines = [node["NodeID"] for node in self._ray.nodes() if node["Alive"]]
        hosts = [
            self._new_host(machine, name, port + number if port else 0, arguments)
            for machine in machines
            for number in range(per_machine)
        ]
        try:
            kept = self._ray.get([host.keep.remote() for host in hosts])
        except Exception as error:
            self._stop(hosts)
            raise error_of(error) from error
        self._hosts = {url: host for host, (url, _) in zip(hosts, kept, strict=True)}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stop(list(self._hosts.values()))

    @property
    def urls(self) -> list[str]:
        """The addresses of the servers."""
        return list(self._hosts)

    def check(self) -> list[str]:
        """Start the servers that ended again, each on its port; forget those whose machine is gone.

        Returns:
            A line for each change.
        """
        changes = []
        for url, host in list(self._hosts.items()):
            try:
                _, again = self._ray.get(host.keep.remote())
            except self._ray.exceptions.RayActorError as error:
                del self._hosts[url]
                changes.append(f"lost {url}: {str(error).strip().splitlines()[0]}")
            except self._ray.exceptions.RayTaskError as error:
                changes.append(f"cannot start {url} again: {error_of(error)}")
            else:
                if again:
                    changes.append(f"started {url} again")
        return changes

    def _new_host(self, machine: str, *arguments: Any) -> Any:
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy  # noqa: PLC0415 - an extra

        here = NodeAffinitySchedulingStrategy(machine, soft=False)
        return self._ray.remote(num_cpus=0, scheduling_strategy=here)(_Host).remote(*arguments)

    def _stop(self, hosts: Sequence[Any]) -> None:
        for host in hosts:
            self._ray.kill(host)  # its server ends with it
        if self._began:
            self._ray.shutdown()


class _Host:
    """The Ray actor that keeps a server running.

    Args:
        name: As for `serve_on_ray`.
        port: The port; 0 takes a free one at the first start.
        arguments: As for `serve_on_ray`.
    """

    def __init__(self, name: str, port: int, arguments: Sequence[str]) -> None:
        import ray  # noqa: PLC0415 - an extra

        self._name = name
        self._arguments = ("--host", ray.util.get_node_ip_address(), *arguments)
        self._server = self._new(port)
        self._url = ""

    def keep(self) -> tuple[str, bool]:
        """Start the server unless it is running; return its URL, and whether it was started again."""
        again = bool(self._url) and not self._server.is_alive()
        if again:  # on its port, as clients know its address
            self._server = self._new(urlsplit(self._url).port or 0)
        self._url = self._server.start()
        return self._url, again

    def _new(self, port: int) -> LocalServer:
        return LocalServer(self._name, port=port, arguments=self._arguments, start_seconds=START_SECONDS)
