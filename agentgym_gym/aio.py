"""The same environment, awaitable: an asynchronous driver over one episode."""

from __future__ import annotations

import asyncio
import threading
import weakref
from typing import TYPE_CHECKING, Any, TypeVar

from agentgym_gym._addresses import configured
from agentgym_gym._base_env import BaseTextEnv, give_back
from agentgym_gym._http.limits import Limits
from agentgym_gym.errors import BadOption, InUse

if TYPE_CHECKING:
    from collections.abc import Callable

    from agentgym_gym._episode import Episode, StepResult
    from agentgym_gym._http.async_driver import AsyncDriver, FlowFuture
    from agentgym_gym._http.limits import Stats
    from agentgym_gym.actions import Action, Verbatim

__all__ = ["AsyncAgentGymEnv"]

T = TypeVar("T")


class AsyncAgentGymEnv(BaseTextEnv):
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
            raise BadOption("transport= is for AgentGymEnv alone")
        from agentgym_gym._http.async_driver import AsyncDriver  # noqa: PLC0415 - see AgentGymEnv

        self._driver = AsyncDriver(limits=self._limits)
        self._episode.stats = self._driver.stats
        # An environment that is dropped without close() still gives back what it holds.
        self._finalizer = weakref.finalize(self, _abandon, self._episode, self._driver)
        self._finalizer.atexit = False  # at exit the order matters: see _base_env.py

    @property
    def stats(self) -> Stats:
        """What was counted since this environment was made: requests, tries again, faults, seconds."""
        return self._driver.stats

    async def reset(  # type: ignore[override]
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[str, dict[str, Any]]:
        """Start a task, as `AgentGymEnv.reset` does."""
        task_id = self._draw(seed, options)
        # Starting a local server takes seconds, which the event loop must not.
        servers = configured(self.environment, self._server) or await asyncio.to_thread(lambda: self.servers)
        return await self._wait_for(
            lambda: self._driver.run(self._episode.reset(task_id, servers), self._until)
        )

    async def step(  # type: ignore[override]
        self, action: str | Action | Verbatim
    ) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """Play one turn, as `AgentGymEnv.step` does."""
        return await self._wait_for(lambda: self.begin_step(action))

    def begin_step(self, action: str | Action | Verbatim) -> FlowFuture[StepResult]:
        """Begin a turn in the running event loop: its request is sent before this returns.

        Returns:
            What can be awaited for the turn.
        """
        return self._driver.run(self._turn(action), self._until)

    def abort_episode(self) -> None:
        """End the episode: nobody waits for the turn that was begun, and its reply may be there already."""
        self._episode.abort_episode()

    async def close(self) -> None:  # type: ignore[override]
        """Give back the remote environment and close the connection. May be called again.

        Raises:
            InUse: Another task is in the midst of a reset or a step.
        """
        try:
            await self._wait_for(lambda: self._driver.run(self._episode.close()))
        except InUse:
            raise
        except BaseException:
            await self._driver.close()
            raise
        await self._driver.close()
        self._closed()

    async def _wait_for(self, begin: Callable[[], FlowFuture[T]]) -> T:
        try:
            return await begin()
        except asyncio.CancelledError:
            self.abort_episode()
            raise
        except KeyboardInterrupt:
            self._driver.cancel()
            self.abort_episode()
            raise


def _abandon(episode: Episode, driver: AsyncDriver) -> None:
    """Give back what a dropped environment holds, in a thread: the garbage collector must not wait."""
    if episode.lease is not None:
        seconds = Limits().close
        threading.Thread(target=lambda: give_back(episode, timeout=seconds), daemon=True).start()
    driver.abandon()
