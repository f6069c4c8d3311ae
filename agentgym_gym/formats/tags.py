"""Tags: ``<think>…</think><action>…</action>``."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from agentgym_gym.formats._base import Format, ParseResult
from agentgym_gym.formats._labels import without_thought_label
from agentgym_gym.formats._reply import MarkedReply, action_in

if TYPE_CHECKING:
    from agentgym_gym.actions import Action, Grammar

__all__ = ["Tags"]

_BETWEEN = re.compile(r"<think(?:ing)?>(.*?)</think(?:ing)?>", re.IGNORECASE | re.DOTALL)


class Tags(Format):
    """``<think>…</think><action>…</action>``."""

    name = "tags"
    _rule = (
        "First write what you think between `<think>` and `</think>`, then exactly one action between "
        "`<action>` and `</action>`."
    )

    def _wrap(self, action: Action, thought: str) -> str:
        return f"<think>{thought}</think>\n<action>{action.style.write(str(action))}</action>"

    def read(self, reply: str, grammar: Grammar) -> ParseResult:
        """Parse the action between tags."""
        whole = MarkedReply(reply, grammar)
        return whole.tagged() or action_in(whole, "tags", "`<action>` and `</action>`")

    def _thought_in(self, reply: str) -> str:
        between = "\n".join(part.strip() for part in _BETWEEN.findall(reply))
        return between or without_thought_label(reply.partition("<action>")[0])
