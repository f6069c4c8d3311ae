"""The environments that a server holds: made, found by id, and forgotten when nobody asks for them."""

from __future__ import annotations

import itertools
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import TYPE_CHECKING, Generic, TypeVar

from agentgym_servers._frame.app import Failed

if TYPE_CHECKING:
    from agentgym_gym.local_servers import ServerOptions

__all__ = ["HeldEnvs"]

E = TypeVar("E")

_FIRST_IDS = 1 << 40  # far below what any reader of JSON takes exactly


class HeldEnvs(Generic[E]):
    """All environments of one server, by id. For one thread only, which is that of the event loop.

    An id is never used again: one that a client holds too long must not reach another's environment.

    Args:
        options: How many it holds at a time, and for how long it keeps one that nobody asks for. They are
            forgotten when another is made.
        new_ids: Whether ids begin at a number that is drawn, so that a server that was restarted gives out
            none of those it gave out before. Clients rely on it where AgentGym's ids are random.
    """

    def __init__(self, options: ServerOptions, *, new_ids: bool = False) -> None:
        self._max_envs = options.max_envs
        self._keep_seconds = options.keep_seconds
        self._held: OrderedDict[int, E] = OrderedDict()  # the one asked for longest ago comes first
        self._used: dict[int, float] = {}
        self._first = secrets.randbelow(_FIRST_IDS) if new_ids else 0
        self._numbers = itertools.count()

    def __len__(self) -> int:
        return len(self._held)

    def add(self, make: Callable[[int], E]) -> int:
        """Hold another environment, and forget those that nobody asked for in a long time.

        Args:
            make: Makes it, by the number of environments that were made before it.

        Returns:
            Its id.

        Raises:
            Failed: It holds as many as it may.
        """
        self._forget_idle()
        if len(self._held) >= self._max_envs:
            raise Failed(
                f"This server holds {self._max_envs} environments, which is its limit, and each was asked "
                f"for in the last {self._keep_seconds:g} s. Close some, or start it with a higher one: "
                "--max-envs, or ServerKind.create_app(max_envs=...)."
            )
        number = next(self._numbers)
        env_id = self._first + number
        self._held[env_id] = make(number)
        self._used[env_id] = time.monotonic()
        return env_id

    def get(self, env_id: int) -> E:
        """Return an environment by its id.

        Raises:
            Failed: There is none.
        """
        if env_id not in self._held:
            raise Failed(f"The id {env_id} is not valid.")
        self._used[env_id] = time.monotonic()
        self._held.move_to_end(env_id)
        return self._held[env_id]

    def close(self, env_id: int) -> bool:
        """Forget an environment; return whether there was one."""
        if env_id not in self._held:
            return False
        del self._held[env_id], self._used[env_id]
        return True

    def ids(self) -> list[int]:
        """Return the ids of all, ascending."""
        return sorted(self._held)

    def _forget_idle(self) -> None:
        before = time.monotonic() - self._keep_seconds
        while self._held and self._used[first := next(iter(self._held))] <= before:
            self.close(first)
