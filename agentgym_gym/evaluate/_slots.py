"""Slots: an environment and an agent, in which one episode after another is played."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from agentgym_gym._logging import logger
from agentgym_gym.evaluate._episode import AgentEpisode, call_here
from agentgym_gym.rollout import CallThread, Isolation, Pool

if TYPE_CHECKING:
    from agentgym_gym.evaluate._agents import Agent
    from agentgym_gym.evaluate._episode import Caller
    from agentgym_gym.evaluate._text_env import TextEnv
    from agentgym_gym.rollout import EpisodeRecord

__all__ = ["LocalSlot", "Part", "Servers", "Slot"]

_CLOSE_SECONDS = 30.0  # for an environment and an agent that are not needed any more


@dataclass(frozen=True, eq=False)
class Servers:
    """The servers of an environment, shared by all parts that are played on them.

    Attributes:
        capacity: How many environments they hold at once; None for no limit.
    """

    capacity: int | None = None


@dataclass(frozen=True)
class Part:
    """One agent in one environment, as part of what `play_parts` plays.

    Attributes:
        make_env: Makes the environment, for one episode after another.
        make_agent: Makes the agent, for one episode after another.
        episodes: Task and sample of each episode.
        on_episode: Called with each record as soon as its episode is over.
        servers: Where it is played: the same object for all parts on the same servers.
        isolate: Where each environment runs, as for `agentgym_gym.rollout.Pool`.
        timeout: Seconds allowed for each call of the environment; None for any number.
        success_at: The return from which on a task counts as solved, as for `agentgym_gym.rollout.Episode`.
    """

    make_env: Callable[[], TextEnv]
    make_agent: Callable[[], Agent]
    episodes: Sequence[tuple[int, int]]
    on_episode: Callable[[EpisodeRecord], object]
    servers: Servers = field(default_factory=Servers)
    isolate: Isolation | None = None
    timeout: float | None = None
    success_at: float | None = None


class Slot(Protocol):
    """An environment and an agent, in which one episode at a time is played.

    Attributes:
        part: What they are of.
    """

    part: Part

    async def play(self, task_id: int, sample: int) -> EpisodeRecord:
        """Play an episode.

        Raises:
            SetupError: It cannot be played without a change of set-up.
        """

    async def close(self) -> None:
        """Close environment and agent."""


class LocalSlot:
    """A slot in this process.

    Args:
        part: What it is of.
    """

    def __init__(self, part: Part) -> None:
        self.part = part
        self._pool = Pool(part.make_env, isolate=part.isolate, timeout=part.timeout)
        self._thread = CallThread("agentgym-agent")
        self._agent: Agent | None = None

    async def play(self, task_id: int, sample: int) -> EpisodeRecord:
        """Play an episode.

        Raises:
            SetupError: It cannot be played without a change of set-up.
        """
        if self._agent is None:
            self._agent = await self._thread(self.part.make_agent)
            self._thread.stop(reuse=True)  # it starts again if the agent blocks
        call: Caller = self._thread if getattr(self._agent, "blocking", True) else call_here
        episode = AgentEpisode(self._pool, self._agent, call, success_at=self.part.success_at)
        return await episode.play(task_id, sample)

    async def close(self) -> None:
        """Close environment and agent; an error of theirs is logged, as the episodes are over."""
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
