"""How a model wraps an action in a reply: each format writes the instructions and reads the answers.

The instructions, the example in them and the parser belong to one object and the list of actions comes from
the grammar, so a prompt cannot teach a form that the parser does not read.

A reply is read in linear time. Nothing that a model wrote is run. The only errors raised are the four kinds
of :class:`~agentgym_gym.errors.ActionError`.
"""

from __future__ import annotations

from agentgym_gym.errors import BadOption
from agentgym_gym.formats.agentgym import AgentGymFormat
from agentgym_gym.formats.base import Format, ParsedReply
from agentgym_gym.formats.call_formats import CodeAsAction, FunctionCalling
from agentgym_gym.formats.text_formats import ADaPT, Bare, ReAct, Tags

__all__ = [
    "FORMATS",
    "ADaPT",
    "AgentGymFormat",
    "Bare",
    "CodeAsAction",
    "Format",
    "FunctionCalling",
    "ParsedReply",
    "ReAct",
    "Tags",
    "get_format",
]

FORMATS: dict[str, Format] = {
    f.name: f for f in (ReAct(), FunctionCalling(), CodeAsAction(), Tags(), ADaPT(), Bare())
}
"""All formats by name."""


def get_format(name: str) -> Format:
    """Return a format by its name.

    Raises:
        BadOption: There is none of that name.
    """
    try:
        return FORMATS[name]
    except (KeyError, TypeError):
        raise BadOption(f"action_format={name!r} is not one of {sorted(FORMATS)}") from None
