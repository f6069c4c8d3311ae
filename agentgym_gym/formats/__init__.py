"""Reply formats: each defines how a model writes an action, and parses the replies.

One object contains the instructions, their example and the parser, and the grammar supplies the list of
actions, so the prompt and the parser always agree.

Parsing depends on marks in the reply, never on its prose, and takes linear time. Nothing that a model wrote
is executed. Parsing raises only the four subclasses of :class:`~agentgym_gym.errors.ActionError`.
"""

from __future__ import annotations

from agentgym_gym.errors import BadOption
from agentgym_gym.formats._base import Format, ParsedReply, ParseResult
from agentgym_gym.formats._dialect_table import Dialect
from agentgym_gym.formats._dialects import register_dialect
from agentgym_gym.formats.adapt import ADaPT
from agentgym_gym.formats.agentgym import AgentGymFormat
from agentgym_gym.formats.bare import Bare
from agentgym_gym.formats.code_as_action import CodeAsAction
from agentgym_gym.formats.function_calling import FunctionCalling
from agentgym_gym.formats.react import ReAct
from agentgym_gym.formats.tags import Tags
from agentgym_gym.formats.tool_calls import ToolCalls

__all__ = [
    "FORMATS",
    "ADaPT",
    "AgentGymFormat",
    "Bare",
    "CodeAsAction",
    "Dialect",
    "Format",
    "FunctionCalling",
    "ParseResult",
    "ParsedReply",
    "ReAct",
    "Tags",
    "ToolCalls",
    "get_format",
    "register_dialect",
]

FORMATS: dict[str, Format] = {
    f.name: f for f in (ReAct(), FunctionCalling(), CodeAsAction(), Tags(), ADaPT(), Bare())
}
"""Formats for text prompts, by name. You may add your own."""

_NATIVE = ToolCalls()


def get_format(action_format: str | Format) -> Format:
    """Return a format by name, including ``"tool_calls"``, which needs no instructions in the prompt.

    Args:
        action_format: A name, or a format, which is returned unchanged.

    Raises:
        BadOption: No format has this name.
    """
    if isinstance(action_format, Format):
        return action_format
    formats = {_NATIVE.name: _NATIVE, **FORMATS}
    try:
        return formats[action_format]
    except (KeyError, TypeError):
        raise BadOption("action_format", action_format, f"one of {sorted(formats)}, or a Format") from None
