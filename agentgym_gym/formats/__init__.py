"""How a model wraps an action in a reply: each format writes the instructions and reads the answers.

The instructions, the example in them and the parser belong to one object and the list of actions comes from
the grammar, so a prompt cannot teach a form that the parser does not read.

A reply is read by its marks, never by its prose, in linear time. Nothing that a model wrote is run. The only
errors raised are the four kinds of :class:`~agentgym_gym.errors.ActionError`.
"""

from __future__ import annotations

from agentgym_gym.errors import BadOption
from agentgym_gym.formats._base import Format, ParsedReply, ParseResult
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
    "Format",
    "FunctionCalling",
    "ParseResult",
    "ParsedReply",
    "ReAct",
    "Tags",
    "ToolCalls",
    "get_format",
]

FORMATS: dict[str, Format] = {
    f.name: f for f in (ReAct(), FunctionCalling(), CodeAsAction(), Tags(), ADaPT(), Bare())
}
"""The formats that a prompt teaches, by name. One of your own may be added."""

_NATIVE = ToolCalls()


def get_format(wanted: str | Format) -> Format:
    """Return a format by its name; ``"tool_calls"``, which no prompt teaches, among them.

    Args:
        wanted: The name, or a format, which is returned.

    Raises:
        BadOption: There is none of that name.
    """
    if isinstance(wanted, Format):
        return wanted
    formats = {_NATIVE.name: _NATIVE, **FORMATS}
    try:
        return formats[wanted]
    except (KeyError, TypeError):
        raise BadOption(f"action_format={wanted!r} is not one of {sorted(formats)}, or a Format") from None
