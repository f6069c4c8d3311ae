"""Native tool calling: a chat template or an API passes the actions as tools."""

from __future__ import annotations

from agentgym_gym.actions import Action, Grammar, ToolCall
from agentgym_gym.formats.function_calling import FunctionCalling

__all__ = ["ToolCalls"]


class ToolCalls(FunctionCalling):
    """The native notation of the model, which needs no instructions in the prompt.

    ``step`` accepts the call as an object. Text is parsed as in `FunctionCalling`, for inference engines that
    leave calls in the text.
    """

    name = "tool_calls"
    _rule = "Call exactly one function in each turn."
    _marked = "function call"

    def instructions(self, grammar: Grammar) -> str:
        """Return the part of a system prompt that explains how to reply; the tools list the actions."""
        return self._rule

    def example(self, grammar: Grammar) -> str:
        """Return a call as JSON, for the observation after a call that cannot be executed."""
        return self._wrap(grammar.examples[0], "")

    def _wrap(self, action: Action, thought: str) -> str:
        call = str(ToolCall(action.name(), action.to_json()))
        return f"{thought}\n\n<tool_call>\n{call}\n</tool_call>" if thought else call

    def _thought_in(self, reply: str) -> str:
        return self._before_call(reply)
