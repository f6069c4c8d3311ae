"""Bare: only the action."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentgym_gym.formats._base import Format, ParseResult
from agentgym_gym.formats._reply import MarkedReply, action_in

if TYPE_CHECKING:
    from agentgym_gym.actions import Action, Grammar

__all__ = ["Bare"]


class Bare(Format):
    """Only the action, without a place for a thought."""

    name = "bare"
    _rule = "Reply with exactly one action and nothing else."

    def _wrap(self, action: Action, thought: str) -> str:
        return action.style.write(str(action))

    def read(self, reply: str, grammar: Grammar) -> ParseResult:
        """Parse the whole reply."""
        whole = MarkedReply(reply, grammar)
        return whole.whole() or action_in(whole, "whole reply", "single action as the whole of it")
