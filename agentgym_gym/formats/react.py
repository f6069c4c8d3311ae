"""ReAct: ``Thought:`` and ``Action:`` (Yao et al., 2023, arXiv:2210.03629)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentgym_gym.formats._base import Format, ParseResult
from agentgym_gym.formats._labels import folded, labels, without_thought_label
from agentgym_gym.formats._reply import MarkedReply, action_in

if TYPE_CHECKING:
    from agentgym_gym.actions import Action, Grammar

__all__ = ["ReAct"]


class ReAct(Format):
    """``Thought:`` and ``Action:`` paragraphs."""

    name = "react"
    _rule = (
        "First write what you think below the word `Thought:`, then exactly one action below the word "
        "`Action:`, and end your reply there."
    )

    def _wrap(self, action: Action, thought: str) -> str:
        return f"Thought:\n{thought}\n\nAction:\n{action.style.write(str(action))}"

    def read(self, reply: str, grammar: Grammar) -> ParseResult:
        """Parse the action after a label."""
        whole = MarkedReply(reply, grammar)
        return whole.labelled() or action_in(whole, "label", "line that begins with `Action:`")

    def _thought_in(self, reply: str) -> str:
        found = labels(folded(reply))
        return without_thought_label(reply[: found[-1].start] if found else reply.rpartition("Action:")[0])
