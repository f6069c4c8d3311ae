"""Slots: an environment and an agent, in which one episode after another is played."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from agentgym_gym._base_env import BaseTextEnv
from agentgym_gym._logging import logger
from agentgym_gym.evaluate.episode import EpisodeInPlay
from agentgym_gym.evaluate.sessions import OwnThread, Session, call_here

if TYPE_CHECKING:
    from agentgym_gym.evaluate.agents import Agent
    from agentgym_gym.evaluate.records import EpisodeRecord, TextEnv
    from agentgym_gym.evaluate.sessions import Caller

__all__ = ["LocalSlot", "Part", "Places", "Slot"]

_CLOSE_SECONDS = 30.0  # for an environment and an agent that are not needed any more


@dataclass(frozen=True, eq=False)
class Places:
    """The places on an environment's servers, shared by all parts that are played on them.

    Attributes:
        most: How many environments they hold at once; None for no limit.
    """

    most: int | None = None

    @classmethod
    def of(cls, env: TextEnv) -> Places:
        """Return those of an environment, which need not be played."""
        own = env.unwrapped
        return cls(own.capacity if isinstance(own, BaseTextEnv) else None)


@dataclass(frozen=True)
class Part:
    """One agent in one environment, as part of what `play_parts` plays.

    Attributes:
        make_env: Makes the environment, for one episode after another. `AsyncAgentGymEnv` is awaited; any
            other works in a thread of its own.
        make_agent: Makes the agent, likewise.
        episodes: Task and sample of each episode.
        on_episode: Called with each record as soon as its episode is over.
        places: Where it is played: the same object for all parts on the same servers.
    """

    make_env: Callable[[], TextEnv]
    make_agent: Callable[[], Agent]
    episodes: Sequence[tuple[int, int]]
    on_episode: Callable[[EpisodeRecord], object]
    places: Places = field(default_factory=Places)


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
        self._thread = OwnThread()
        self._session: Session | None = None
        self._agent: Agent | None = None

    async def play(self, task_id: int, sample: int) -> EpisodeRecord:
        """Play an episode.

        Raises:
            SetupError: It cannot be played without a change of set-up.
        """
        if self._session is None or self._agent is None:
            self._session = Session(await self._thread(self.part.make_env), self._thread)
            self._agent = await self._thread(self.part.make_agent)
            self._thread.stop()  # it may not be needed any more, and starts again where it is
        call: Caller = self._thread if getattr(self._agent, "blocking", True) else call_here
        return await EpisodeInPlay(self._session, self._agent, call).play(task_id, sample)

    async def close(self) -> None:
        """Close environment and agent; an error of theirs is logged, as the episodes are over."""
        import asyncio  # noqa: PLC0415 - importing the library must be cheap

        closes = [getattr(self._agent, "close", None), None if self._session is None else self._session.close]
        try:
            for close in closes:
                if close is None:
                    continue
                try:
                    await asyncio.wait_for(self._thread(close), _CLOSE_SECONDS)
                except Exception as error:  # noqa: BLE001 - another's code may raise anything
                    logger.warning("closing failed after evaluation: %s: %s", type(error).__name__, error)
        finally:
            self._thread.stop()
