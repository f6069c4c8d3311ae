"""Limits of an episode's tokens, from verl's configuration of the rollout."""

from __future__ import annotations

import sys
from typing import Any, NamedTuple

__all__ = ["TokenLimit", "TokenLimits"]


class TokenLimit(NamedTuple):
    """A number of tokens.

    Attributes:
        tokens: The number.
        setting: The setting of verl that it comes from.
    """

    tokens: int
    setting: str


class TokenLimits:
    """Reads the limits once: each look-up in verl's configuration costs as much as encoding a short text.

    Args:
        rollout: ``actor_rollout_ref.rollout``.

    Attributes:
        of_prompt: The maximum length of the first prompt, which must leave one token for a reply.
        response_length: The maximum length of the response.
    """

    def __init__(self, rollout: Any) -> None:
        context = rollout.get("max_model_len", None)
        self._context = sys.maxsize if context is None else int(context)
        self.of_prompt = min(
            TokenLimit(int(rollout.prompt_length), "data.max_prompt_length"),
            TokenLimit(self._context - 1, "rollout.max_model_len"),
        )
        self.response_length = int(rollout.response_length)

    def room(self, whole: int, response: int) -> TokenLimit:
        """Return how many more tokens fit.

        Args:
            whole: The length of the prompt and the response so far.
            response: The length of the response so far.
        """
        length = self.response_length
        return min(
            TokenLimit(length - response, f"data.max_response_length={length}"),
            TokenLimit(self._context - whole, f"rollout.max_model_len={self._context}"),
        )

    def explain(self, prompt: int) -> str:
        """Return why a first prompt of this length is rejected, and what to do."""
        limit, setting = self.of_prompt
        return (
            f"the first prompt has {prompt} tokens, and {setting} allows {limit}: raise it, or shorten the "
            "rules and the first observation"
        )
