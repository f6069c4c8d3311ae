"""A training on several nodes: which GPUs train, and which servers all nodes reach."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

from agentgym_gym.errors import BadOption
from verl_bridge.recipes._options import named

if TYPE_CHECKING:
    from verl_bridge.tasks import EnvTask

__all__ = ["Pool", "check_pools", "check_servers", "loopback_server", "pools"]


class Pool(NamedTuple):
    """GPUs of one purpose.

    Attributes:
        nodes: Number of nodes.
        gpus: GPUs of each node.
    """

    nodes: int
    gpus: int


def pools(nodes: int, gpus: int, separate: int) -> tuple[Pool, Pool]:
    """Return the GPUs that train, and those that only generate.

    A single node has both kinds. With several nodes, each has one kind.

    Args:
        nodes: Number of nodes.
        gpus: GPUs of each node.
        separate: GPUs that only generate; with several nodes, a multiple of `gpus`.
    """
    if nodes == 1:
        return Pool(1, gpus - separate), Pool(1, separate)
    return Pool(nodes - separate // gpus, gpus), Pool(separate // gpus, gpus if separate else 0)


def check_pools(nodes: int, gpus: int, separate: int) -> None:
    """Check whether some GPUs train and some only generate, as ``separate_async`` requires.

    Args:
        nodes: Number of nodes.
        gpus: GPUs of each node.
        separate: GPUs that only generate.

    Raises:
        BadOption: One kind has no GPUs, or a node of several has both kinds.
    """
    if not 0 < separate < nodes * gpus:
        every = f"`gpus`={gpus}" if nodes == 1 else f"`nodes`={nodes} of `gpus`={gpus}"
        problem = (
            f"divides {every} into `rollout_gpus`={separate} and the others, which train: "
            "both need at least 1"
        )
        raise BadOption("trainer", "separate_async", problem=named(problem))
    if nodes > 1 and separate % gpus:
        problem = f"should be a multiple of `gpus`={gpus}: with several nodes, each trains or generates"
        raise BadOption("rollout_gpus", separate, problem=named(problem))


def check_servers(nodes: int, env_kwargs: Iterable[Mapping[str, Any]]) -> None:
    """Check whether all nodes reach the servers of the environments.

    Args:
        nodes: Number of nodes.
        env_kwargs: The arguments of each environment.

    Raises:
        BadOption: A server has a loopback address, and there are several nodes.
    """
    server = next(filter(None, (_first_loopback(each.get("server")) for each in env_kwargs)), None)
    if nodes > 1 and server is not None:
        problem = (
            f"is a loopback address, which other nodes do not reach, with `nodes`={nodes}: start the server "
            "with an address that all nodes reach, and pass that address"
        )
        raise BadOption("server", server, problem=named(problem))


def loopback_server(task: EnvTask) -> str:
    """Return a server of an environment that only its own machine reaches, or an empty text.

    It is one of the argument ``server``, or of the variable ``AGENTGYM_NAME_URL``, which ``run.sh`` sends to
    the other nodes; the text then has the name of the variable.

    Args:
        task: The environment.
    """
    servers = task.env_kwargs.get("server")
    if servers is not None:
        return _first_loopback(servers)
    name = re.sub(r"-v\d+$", "", task.env_id.rpartition("/")[2])
    variable = f"AGENTGYM_{name.upper()}_URL"
    set_here = _first_loopback(os.environ.get(variable, ""))
    return f"{set_here} of {variable}" if set_here else ""


def _first_loopback(servers: Any) -> str:
    """Return the first loopback address of servers, given as text or as a list; an empty text without one."""
    servers = servers.split(",") if isinstance(servers, str) else servers
    urls = servers if isinstance(servers, list | tuple) else ()
    return next((url for url in urls if isinstance(url, str) and _is_loopback(url)), "")


def _is_loopback(url: str) -> bool:
    try:
        host = urlsplit(url.strip()).hostname or ""
    except ValueError:  # an invalid URL, which other checks report
        return False
    return host in {"localhost", "::1"} or host.startswith("127.")
