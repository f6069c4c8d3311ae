"""A training on several nodes: which GPUs train, and which addresses all nodes reach."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import urlsplit

__all__ = ["Pool", "loopback_server", "pools"]


class Pool(NamedTuple):
    """GPUs of one purpose.

    Attributes:
        nodes: Number of nodes.
        gpus: GPUs of each node.
    """

    nodes: int
    gpus: int

    @property
    def total(self) -> int:
        """GPUs of all nodes."""
        return self.nodes * self.gpus


def pools(nodes: int, gpus: int, separate: int) -> tuple[Pool, Pool]:
    """Return the GPUs that train, and those that only generate.

    On one node both kinds are on it; of several nodes, each node has one kind.

    Args:
        nodes: Number of nodes.
        gpus: GPUs of each node.
        separate: GPUs that only generate; of several nodes, a multiple of `gpus`.
    """
    if nodes == 1:
        return Pool(1, gpus - separate), Pool(1, separate)
    return Pool(nodes - separate // gpus, gpus), Pool(separate // gpus, gpus if separate else 0)


def loopback_server(env_kwargs: Mapping[str, Any]) -> str:
    """Return a server among the arguments of an environment that only its own machine reaches, or ""."""
    servers = env_kwargs.get("server")
    for server in servers if isinstance(servers, list | tuple) else [servers]:
        host = urlsplit(server).hostname if isinstance(server, str) else None
        if host is not None and (host in {"localhost", "::1"} or host.startswith("127.")):
            return str(server)
    return ""
