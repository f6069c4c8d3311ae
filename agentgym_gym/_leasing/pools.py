"""The lease pools of this process, one per server."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from agentgym_gym._leasing.pool import LeasePool
from agentgym_gym._lifecycle import after_fork_in_child

if TYPE_CHECKING:
    from agentgym_gym.catalogue import Environment

__all__ = ["pool_of"]

_pools: dict[tuple[int, str], LeasePool] = {}
_pools_lock = threading.Lock()


def pool_of(environment: Environment, server: str) -> LeasePool:
    """Return this process's only pool for a server."""
    with _pools_lock:
        key = (id(environment), server)  # the pool keeps the environment alive, so the id stays unique
        if key not in _pools:
            _pools[key] = LeasePool(environment, server)
        return _pools[key]


def _forget_pools() -> None:
    """Remove all pools in a forked child: the leases belong to its parent."""
    global _pools_lock  # noqa: PLW0603 - the parent may have held it while forking
    _pools_lock = threading.Lock()
    _pools.clear()


after_fork_in_child(_forget_pools)
