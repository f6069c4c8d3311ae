"""The format of models that are given the actions as tools, by a chat template or an API."""

from __future__ import annotations

from agentgym_gym.actions import Action, Grammar, ToolCall
from agentgym_gym.formats.call_formats import FunctionCalling

__all__ = ["ToolCalls"]


class ToolCalls(FunctionCalling):
    """Native tool calling: a prompt that teaches no format, because the model has one of its own.

    ``step`` is handed the call as an object. Text is read for the calls that models write where no engine
    takes them out, as `FunctionCalling` does.
    """

    name = "tool_calls"
    _rule = "Call exactly one function in each turn."

    def instructions(self, grammar: Grammar) -> str:
        """Return the part of a system prompt that says how to reply; the tools list the actions."""
        return self._rule

    def example(self, grammar: Grammar) -> str:
        """Return a call as JSON: the advice to a model whose call could not be carried out."""
        return self._wrap(grammar.examples[0], "")

    def _wrap(self, action: Action, thought: str) -> str:
        call = str(ToolCall(action.name(), action.to_json()))
        return f"{thought}\n\n<tool_call>\n{call}\n</tool_call>" if thought else call
