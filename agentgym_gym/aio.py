"""The asynchronous environment: its ``reset``, ``step`` and ``close`` are coroutines."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from gymnasium.utils import seeding

from agentgym_gym._addresses import configured
from agentgym_gym._base_env import BaseTextEnv
from agentgym_gym._env_options import is_client
from agentgym_gym._exit import EXIT_SECONDS, release
from agentgym_gym._http.limits import Limits
from agentgym_gym._logging import logger
from agentgym_gym._threads import call_in_background
from agentgym_gym.errors import InUse

if TYPE_CHECKING:
    import asyncio

    import numpy as np
    from gymnasium.envs.registration import EnvSpec
    from typing_extensions import Self

    from agentgym_gym._base_env import Channel
    from agentgym_gym._http.async_driver import AsyncDriver
    from agentgym_gym._http.limits import Stats
    from agentgym_gym._remote_episode import RemoteEpisode, StepResult
    from agentgym_gym.actions import StepAction

__all__ = ["AsyncAgentGymEnv"]

T = TypeVar("T")


class AsyncAgentGymEnv(BaseTextEnv):
    """`AgentGymEnv` with coroutines for ``reset``, ``step`` and ``close``. ``async with`` closes it.

    It is not a `gymnasium.Env`, whose methods are synchronous: wrappers and `gymnasium.make` do not support
    it. It has the same attributes and properties, and the same observations, rewards and infos.

    One task at a time can use an environment, in any event loop. Cancelling a task during a step ends the
    episode, because it is unknown whether the server executed the action.

    Args:
        environment: Name in the catalogue, such as ``"TextCraft"``.
        **options: The options of `AgentGymEnv`. ``http_client`` is an ``httpx.AsyncClient``, or a callable
            that returns one. A live client works only in its own event loop, so that the environment is not
            released on garbage collection or at exit: await ``close``.

    Raises:
        UnknownEnvironment: The catalogue has no such environment.
        BadOption: An argument, or the variable for headers, has an invalid value.
    """

    spec: EnvSpec | None = None
    _asynchronous = True
    _np_random: np.random.Generator | None = None
    _np_random_seed: int | None = None

    def _attach(self) -> None:
        from agentgym_gym._http.async_driver import AsyncDriver  # noqa: PLC0415 - see AgentGymEnv

        channel = self._channel
        self._driver = AsyncDriver(
            limits=self._limits, headers=channel.headers, http_client=channel.http_client
        )
        self._episode.stats = self._driver.stats
        # An environment that is garbage-collected without close() still releases its remote environment.
        self._finalizer = weakref.finalize(
            self, _abandon, self._episode, self._driver, channel, self._limits.close
        )
        self._finalizer.atexit = False  # at exit the order matters: see _exit.py

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    @property
    def unwrapped(self) -> Self:
        """The environment itself: it has no wrappers."""
        return self

    @property
    def np_random(self) -> np.random.Generator:
        """The generator that selects tasks, seeded by ``reset(seed=...)``."""
        if self._np_random is None:
            self._np_random, self._np_random_seed = seeding.np_random()
        return self._np_random

    @property
    def np_random_seed(self) -> int:
        """The seed of `np_random`."""
        if self._np_random_seed is None:
            self._np_random, self._np_random_seed = seeding.np_random()
        return self._np_random_seed

    @property
    def stats(self) -> Stats:
        """Metrics since this environment was created: requests, retries, faults, seconds."""
        return self._driver.stats

    async def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[str, dict[str, Any]]:
        """Start a task, as `AgentGymEnv.reset` does."""
        task_id = self._draw(seed, options)
        import asyncio  # noqa: PLC0415 - see AgentGymEnv

        # Starting a local server takes seconds, and must not block the event loop.
        servers = configured(self.environment, self._server) or await asyncio.to_thread(lambda: self.servers)
        return await self._wait_for(
            lambda: self._driver.run(self._episode.reset(task_id, servers), self._until)
        )

    async def step(self, action: StepAction) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """Execute one turn, as `AgentGymEnv.step` does."""
        return await self._wait_for(lambda: self.begin_step(action))

    def begin_step(self, action: StepAction) -> asyncio.Future[StepResult]:
        """Start a turn in the running event loop: the request is sent before this method returns.

        Args:
            action: As for ``step``.

        Returns:
            A future of the result of ``step``.

        Raises:
            InUse: Another task is running a reset or a step.
        """
        return self._driver.run(self._episode.step(action), self._until)

    def abort_episode(self) -> None:
        """Abort the episode: its last step was abandoned, so a reset is required."""
        self._episode.abort_episode()

    async def close(self) -> None:
        """Release the remote environment and close the connection. It and ``reset`` may be called again.

        Raises:
            InUse: Another task is running a reset or a step.
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

    def _seed(self, seed: int | None) -> np.random.Generator:
        if seed is not None:
            self._np_random, self._np_random_seed = seeding.np_random(seed)
        return self.np_random

    def _end_call(self) -> None:
        self._driver.end_call()

    def _release(self) -> bool:
        return _release(self._episode, self._channel, timeout=EXIT_SECONDS / 5)

    async def _wait_for(self, begin: Callable[[], asyncio.Future[T]]) -> T:
        import asyncio  # noqa: PLC0415 - see AgentGymEnv

        try:
            work = begin()
            if work.done():
                await asyncio.sleep(0)  # a caller that retries at once must not stop the other tasks
            return await work
        except asyncio.CancelledError:
            self.abort_episode()
            raise
        except KeyboardInterrupt:
            self._driver.cancel()
            self.abort_episode()
            raise


def _abandon(episode: RemoteEpisode, driver: AsyncDriver, channel: Channel, seconds: float) -> None:
    """Release the remote environment in a thread, because the garbage collector must not wait."""

    def release_first() -> None:
        try:
            _release(episode, channel, timeout=seconds)
        finally:
            driver.abandon()  # an open connection proves that the environment is still ours

    if channel.http_client is not None:  # its event loop may end meanwhile, and its connections prove nothing
        driver.abandon()
    if episode.holder.leases:
        call_in_background(release_first)
    else:
        driver.abandon()


def _release(episode: RemoteEpisode, channel: Channel, *, timeout: float) -> bool:
    """Release the remote environments of an episode, in a thread without an event loop.

    Args:
        episode: The episode; not to be used afterwards.
        channel: The transport options.
        timeout: Seconds allowed.

    Returns:
        False if the server does not answer.
    """
    if channel.http_client is None:
        return release(episode, channel, timeout=timeout)
    if is_client(channel.http_client):
        if episode.holder.leases:
            logger.warning(
                "a remote environment stays open: its AsyncClient works only in its own event loop. "
                "Await close() there"
            )
        return True  # no request was sent, so the state of the server is unknown
    from agentgym_gym._event_loop import run_here  # noqa: PLC0415 - see AgentGymEnv

    return run_here(_run_close(episode, channel, timeout))


async def _run_close(episode: RemoteEpisode, channel: Channel, timeout: float) -> bool:
    from agentgym_gym._http.async_driver import AsyncDriver  # noqa: PLC0415 - see AgentGymEnv

    driver = AsyncDriver(
        limits=Limits.of(timeout, {"close": timeout}),
        headers=channel.headers,
        http_client=channel.http_client,
    )
    try:
        return await driver.run(episode.close())
    finally:
        await driver.close()
