"""Agents with scripted replies."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import gymnasium

    from agentgym_gym.actions import Action

__all__ = ["FunctionAgent", "ScriptedAgent"]


class ScriptedAgent:
    """Gives the same replies in every episode, and then gives up.

    An `agentgym_gym.evaluate.Agent`, as all agents here. `agentgym_gym.evaluate.RandomAgent` draws its
    replies by a seed.

    Args:
        *replies: Its replies: text, or typed actions.
        name: What to call it in a log.
    """

    def __init__(self, *replies: str | Action, name: str = "scripted") -> None:
        self.name = name
        self.replies = replies
        self._left: Iterator[str | Action] = iter(replies)

    def reset(self, env: gymnasium.Env[str, Any], observation: str, info: dict[str, Any]) -> None:
        """Start from the first reply."""
        self._left = iter(self.replies)

    def act(self, observation: str, info: dict[str, Any]) -> str | Action | None:
        """Return the next reply, None when there is none."""
        return next(self._left, None)


class FunctionAgent:
    """Replies by a function of the last observation.

    Args:
        function: Takes an observation; returns text, a typed action, or None to give up.
        name: What to call it in a log.
    """

    def __init__(self, function: Callable[[str], str | Action | None], name: str = "function") -> None:
        self.name = name
        self.function = function

    def reset(self, env: gymnasium.Env[str, Any], observation: str, info: dict[str, Any]) -> None:
        """Do nothing: it remembers nothing."""

    def act(self, observation: str, info: dict[str, Any]) -> str | Action | None:
        """Return the function's answer."""
        return self.function(observation)
