"""Function calling: one JSON object in AgentGym's shape or another, or a native notation."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from agentgym_gym._json import NotJson, decode
from agentgym_gym.formats._base import Format, ParseResult
from agentgym_gym.formats._labels import without_thought_label
from agentgym_gym.formats._reply import MarkedReply, action_in

if TYPE_CHECKING:
    from agentgym_gym.actions import Action, Grammar

__all__ = ["FunctionCalling"]

_OBJECT = re.compile(r"\{(?=\s*[\"'}])")  # and not a set or a template in the thought
_CALL = re.compile(rf"<tool_call>|^[ \t]*(?:```\w*\s*)?{_OBJECT.pattern}", re.MULTILINE)


class FunctionCalling(Format):
    """One JSON object, or a native notation."""

    name = "function_calling"
    _rule = (
        "Reply with one JSON object and nothing else. It has three keys: `thought`, what you think; "
        "`function_name`, the function to call; `arguments`, an object with its arguments."
    )
    _marked = "JSON object with `function_name` and `arguments`"

    def _actions(self, grammar: Grammar) -> str:
        tools = "\n".join(json.dumps(tool["function"], ensure_ascii=False) for tool in grammar.tools())
        return f"The functions, as JSON:\n{tools}"

    def _wrap(self, action: Action, thought: str) -> str:
        call = {"thought": thought, "function_name": action.name(), "arguments": action.to_json()}
        return json.dumps(call, ensure_ascii=False)

    def read(self, reply: str, grammar: Grammar) -> ParseResult:
        """Parse the call in JSON or a native notation."""
        whole = MarkedReply(reply, grammar)
        return whole.called(own=True) or action_in(whole, "call", self._marked)

    def _thought_in(self, reply: str) -> str:
        found = _OBJECT.search(reply)
        try:
            value = decode(reply, found.start())[0] if found else None
        except NotJson:
            value = None
        inside = value.get("thought") if isinstance(value, dict) else None
        return inside if isinstance(inside, str) else self._before_call(reply)

    @staticmethod
    def _before_call(reply: str) -> str:
        call = _CALL.search(reply)
        return without_thought_label(reply[: call.start()]) if call else ""
