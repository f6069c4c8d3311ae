"""Agents with scripted replies."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import gymnasium

    from agentgym_gym.actions import Action

__all__ = ["FunctionAgent", "ScriptedAgent"]


class ScriptedAgent:
    """Returns the same replies in every episode, then gives up.

    It implements `agentgym_gym.evaluate.Agent`. For random replies from a seed, use
    `agentgym_gym.evaluate.RandomAgent`.

    Args:
        *replies: The replies: text, or typed actions.
        name: The name of the agent in logs.
    """

    def __init__(self, *replies: str | Action, name: str = "scripted") -> None:
        self.name = name
        self.replies = replies
        self._left: Iterator[str | Action] = iter(replies)

    def reset(self, env: gymnasium.Env[str, Any], observation: str, info: dict[str, Any]) -> None:
        """Start from the first reply."""
        self._left = iter(self.replies)

    def act(self, observation: str, info: dict[str, Any]) -> str | Action | None:
        """Return the next reply; None after the last one."""
        return next(self._left, None)


class FunctionAgent:
    """Computes each reply from the last observation with a function.

    Args:
        function: Takes an observation; returns text, a typed action, or None to give up.
        name: The name of the agent in logs.
    """

    def __init__(self, function: Callable[[str], str | Action | None], name: str = "function") -> None:
        self.name = name
        self.function = function

    def reset(self, env: gymnasium.Env[str, Any], observation: str, info: dict[str, Any]) -> None:
        """Do nothing: the agent has no state."""

    def act(self, observation: str, info: dict[str, Any]) -> str | Action | None:
        """Return the result of the function."""
        return self.function(observation)
