"""Workers: an environment and an agent that play episodes, one at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from agentgym_gym._logging import logger
from agentgym_gym.evaluate._episode import AgentEpisode, RunningCalls, call_here
from agentgym_gym.rollout import Isolation, Pool
from agentgym_gym.rollout._call_thread import CallThread

if TYPE_CHECKING:
    from agentgym_gym.evaluate._agents import Agent
    from agentgym_gym.evaluate._episode import Caller
    from agentgym_gym.evaluate._text_env import TextEnv
    from agentgym_gym.rollout import EpisodeRecord

__all__ = ["EpisodeWorker", "Job", "LocalEpisodeWorker", "Servers"]

_CLOSE_SECONDS = 30.0  # timeout for closing an environment and an agent


@dataclass(frozen=True, eq=False)
class Servers:
    """The servers of an environment, shared by all jobs that use them.

    Attributes:
        capacity: Maximum number of concurrent environments; None for no limit.
        calls: The running calls of their environments.
    """

    capacity: int | None = None
    calls: RunningCalls = field(default_factory=RunningCalls)


@dataclass(frozen=True)
class Job:
    """One agent in one environment, for `play_jobs`.

    Attributes:
        make_env: Makes an environment, which plays many episodes.
        make_agent: Makes an agent, which plays many episodes.
        episodes: Task id and sample of each episode.
        on_episode: Called with each record as soon as its episode ends.
        servers: The servers, as the same object for all jobs that share them.
        isolate: Where each environment runs, as for `agentgym_gym.rollout.Pool`.
        timeout: Timeout in seconds for each call of the environment; None for no timeout.
        success_at: Minimum return for success, as for `agentgym_gym.rollout.Episode`.
    """

    make_env: Callable[[], TextEnv]
    make_agent: Callable[[], Agent]
    episodes: Sequence[tuple[int, int]]
    on_episode: Callable[[EpisodeRecord], object]
    servers: Servers = field(default_factory=Servers)
    isolate: Isolation | None = None
    timeout: float | None = None
    success_at: float | None = None


class EpisodeWorker(Protocol):
    """An environment and an agent that play one episode at a time.

    Attributes:
        job: The job whose episodes the worker plays.
    """

    job: Job

    async def play(self, task_id: int, sample: int) -> EpisodeRecord:
        """Play an episode.

        Raises:
            SetupError: The task cannot be played until the setup is fixed.
        """

    async def close(self) -> None:
        """Close the environment and the agent."""


class LocalEpisodeWorker:
    """A worker in this process.

    Args:
        job: The job whose episodes the worker plays.
    """

    def __init__(self, job: Job) -> None:
        self.job = job
        self._pool = Pool(job.make_env, isolate=job.isolate, timeout=job.timeout)
        self._thread = CallThread("agentgym-agent")
        self._agent: Agent | None = None

    async def play(self, task_id: int, sample: int) -> EpisodeRecord:
        """Play an episode.

        Raises:
            SetupError: The task cannot be played until the setup is fixed.
        """
        if self._agent is None:
            self._agent = await self._thread(self.job.make_agent)
            self._thread.stop(reuse=True)  # the thread starts again if the agent is blocking
        call: Caller = self._thread if getattr(self._agent, "blocking", True) else call_here
        calls, success_at = self.job.servers.calls, self.job.success_at
        episode = AgentEpisode(self._pool, self._agent, call, success_at=success_at, calls=calls)
        return await episode.play(task_id, sample)

    async def close(self) -> None:
        """Close the environment and the agent, and log errors, because the episodes have already ended."""
        import asyncio  # noqa: PLC0415 - importing the library must be cheap

        close_agent = getattr(self._agent, "close", None)
        try:
            if close_agent is not None:
                await asyncio.wait_for(self._thread(close_agent), _CLOSE_SECONDS)
        except Exception as error:  # noqa: BLE001 - another's code may raise anything
            logger.warning("closing failed after evaluation: %s: %s", type(error).__name__, error)
        finally:
            self._thread.stop(reuse=True)
            await self._pool.close()
