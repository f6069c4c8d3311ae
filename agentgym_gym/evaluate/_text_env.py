"""The type of the environments that agents play."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    import gymnasium

    from agentgym_gym.aio import AsyncAgentGymEnv

__all__ = ["TextEnv"]

TextEnv: TypeAlias = "gymnasium.Env[str, Any] | AsyncAgentGymEnv"
"""A text environment, synchronous or asynchronous."""
