"""The result of an action."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["GameTurn"]


@dataclass(frozen=True)
class GameTurn:
    """The result of an action, or the start of a game.

    Attributes:
        observation: The observation.
        reward: The reward, an integer where AgentGym's server sends one.
        done: Whether the game is over.
    """

    observation: str
    reward: float = 0
    done: bool = False
