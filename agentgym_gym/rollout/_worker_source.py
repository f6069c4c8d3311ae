"""The interface between an episode and the pool that provides its environment."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from agentgym_gym.rollout._workers import Worker

__all__ = ["Workers"]


class Workers(Protocol):
    """Source of an episode's environment, such as a `Pool`.

    Attributes:
        env_id: The gymnasium id of the environment.
    """

    @property
    def env_id(self) -> str:
        """The gymnasium id of the environment."""

    async def acquire(self) -> Worker:
        """Return an unused environment."""

    def release(self, worker: Worker) -> None:
        """Return an environment for reuse."""

    async def discard(self, worker: Worker) -> None:
        """Close an environment that cannot be reused."""
