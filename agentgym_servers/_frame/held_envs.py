"""The environments of a server: created, found by id, and dropped when idle for too long."""

from __future__ import annotations

import itertools
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import TYPE_CHECKING, Generic, TypeVar

from agentgym_servers._frame.app import Failed, Full

if TYPE_CHECKING:
    from agentgym_gym.local_servers import ServerOptions

__all__ = ["HeldEnvs"]

E = TypeVar("E")

_FIRST_IDS = 1 << 40  # far below the largest integer that all JSON parsers represent exactly


class HeldEnvs(Generic[E]):
    """All environments of one server, by id; not thread-safe, for the thread of the event loop only.

    An id is never reused: a client that keeps an id for too long must not reach another client's environment.

    Args:
        options: The maximum number of environments, and how long an idle one is kept. Idle environments are
            dropped when another one is added.
        new_ids: Whether ids start at a random number, so that a restarted server does not hand out ids that
            it used before. Clients rely on this where AgentGym's ids are random.
    """

    def __init__(self, options: ServerOptions, *, new_ids: bool = False) -> None:
        self._max_envs = options.max_envs
        self._keep_seconds = options.keep_seconds
        self._held: OrderedDict[int, E] = OrderedDict()  # least recently used first
        self._used: dict[int, float] = {}
        self._first = secrets.randbelow(_FIRST_IDS) if new_ids else 0
        self._numbers = itertools.count()

    def __len__(self) -> int:
        return len(self._held)

    def __contains__(self, env_id: object) -> bool:
        return env_id in self._held

    def add(self, make: Callable[[int], E]) -> int:
        """Add an environment, and drop the environments that have been idle for too long.

        Args:
            make: Creates the environment from the number of environments created before it.

        Returns:
            Its id.

        Raises:
            Full: The server already has the maximum number of environments.
        """
        self._forget_idle()
        if len(self._held) >= self._max_envs:
            raise Full(self._max_envs, self._keep_seconds)
        number = next(self._numbers)
        env_id = self._first + number
        self._held[env_id] = make(number)
        self._used[env_id] = time.monotonic()
        return env_id

    def get(self, env_id: int) -> E:
        """Return an environment by its id.

        Raises:
            Failed: No environment has this id.
        """
        if env_id not in self._held:
            raise Failed(f"The id {env_id} is not valid.")
        self._used[env_id] = time.monotonic()
        self._held.move_to_end(env_id)
        return self._held[env_id]

    def close(self, env_id: int) -> bool:
        """Drop an environment; return whether it existed."""
        if env_id not in self._held:
            return False
        del self._held[env_id], self._used[env_id]
        return True

    def ids(self) -> list[int]:
        """Return the ids of all environments, ascending."""
        return sorted(self._held)

    def _forget_idle(self) -> None:
        before = time.monotonic() - self._keep_seconds
        while self._held and self._used[first := next(iter(self._held))] <= before:
            self.close(first)
