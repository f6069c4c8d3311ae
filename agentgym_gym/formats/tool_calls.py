"""Native tool calling: the actions are given as tools, by a chat template or an API."""

from __future__ import annotations

from agentgym_gym.actions import Action, Grammar, ToolCall
from agentgym_gym.formats.function_calling import FunctionCalling

__all__ = ["ToolCalls"]


class ToolCalls(FunctionCalling):
    """The native notation of the model: no prompt teaches it.

    ``step`` takes the call as an object. A reply of text is read as `FunctionCalling` reads it, for engines
    that leave calls in the text.
    """

    name = "tool_calls"
    _rule = "Call exactly one function in each turn."

    def instructions(self, grammar: Grammar) -> str:
        """Return the part of a system prompt that says how to reply; the tools list the actions."""
        return self._rule

    def example(self, grammar: Grammar) -> str:
        """Return a call as JSON, for the observation after a call that cannot be carried out."""
        return self._wrap(grammar.examples[0], "")

    def _wrap(self, action: Action, thought: str) -> str:
        call = str(ToolCall(action.name(), action.to_json()))
        return f"{thought}\n\n<tool_call>\n{call}\n</tool_call>" if thought else call

    def _thought_in(self, reply: str) -> str:
        return self._before_call(reply)
