"""The same environment, awaitable: an asynchronous driver over one episode."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import weakref
from typing import TYPE_CHECKING, Any

from agentgym_gym.addresses import configured
from agentgym_gym.delivery import Limits
from agentgym_gym.errors import BadOption, InUse
from agentgym_gym.seat import Seat, give_back

if TYPE_CHECKING:
    from collections.abc import Iterator

    from agentgym_gym.actions import Action, Verbatim
    from agentgym_gym.async_client import AsyncDriver
    from agentgym_gym.delivery import Stats
    from agentgym_gym.episode import Episode

__all__ = ["AsyncAgentGymEnv"]


class AsyncAgentGymEnv(Seat):
    """`AgentGymEnv` with ``reset``, ``step`` and ``close`` to be awaited; all else is as there.

    A task that is cancelled in the midst of a step leaves an episode that is over: what the server made of
    the action nobody knows.

    Args:
        environment: Name in the catalogue, such as ``"TextCraft"``.
        **options: As `AgentGymEnv` has them, but for ``transport``.

    Raises:
        UnknownEnvironment: The catalogue has no such environment.
        BadOption: An argument has a value it cannot have.
    """

    def _attach(self) -> None:
        if self._transport is not None:
            raise BadOption("transport= is for AgentGymEnv: this environment speaks by aiohttp")
        from agentgym_gym.async_client import AsyncDriver  # noqa: PLC0415 - aiohttp is slow to import

        self._driver = AsyncDriver(limits=self._limits)
        self._episode.stats = self._driver.stats
        self._busy = False
        # An environment that is dropped without close() still gives back what it holds.
        self._finalizer = weakref.finalize(self, _abandon, self._episode, self._driver)
        self._finalizer.atexit = False  # at exit the order matters: see seat.py

    @property
    def stats(self) -> Stats:
        """What was counted since this environment was made: requests, tries again, faults, seconds."""
        return self._driver.stats

    async def reset(  # type: ignore[override]
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[str, dict[str, Any]]:
        """Start a task, as `AgentGymEnv.reset` does."""
        with self._alone():
            task_id = self._draw(seed, options)
            # Starting a local server takes seconds, which the event loop must not.
            servers = configured(self.environment, self._server) or await asyncio.to_thread(
                lambda: self.servers
            )
            return await self._driver.run(self._episode.reset(task_id, servers), self._until)

    async def step(  # type: ignore[override]
        self, action: str | Action | Verbatim
    ) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """Play one turn, as `AgentGymEnv.step` does."""
        with self._alone():
            turn = await self._driver.run(self._episode.step(action), self._until)
        self._raise_fault()
        return turn

    async def close(self) -> None:  # type: ignore[override]
        """Give back the remote environment and close the connection. May be called again.

        Raises:
            InUse: Another task is in the midst of a reset or a step.
        """
        with self._alone():
            try:
                await self._driver.run(self._episode.close())
            finally:
                await self._driver.close()
        self._closed()

    @contextlib.contextmanager
    def _alone(self) -> Iterator[None]:
        if self._busy:
            raise InUse("this environment is in use by another task; make one for each task")
        self._busy = True
        try:
            yield
        finally:
            self._busy = False


def _abandon(episode: Episode, driver: AsyncDriver) -> None:
    """Give back what a dropped environment holds, in a thread: the garbage collector must not wait."""
    if episode.lease is not None:
        seconds = Limits().close
        threading.Thread(target=lambda: give_back(episode, timeout=seconds), daemon=True).start()
    driver.abandon()
