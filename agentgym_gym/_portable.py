"""The types of actions and formats that may cross from an environment's process."""

from __future__ import annotations

import importlib
import sys
from dataclasses import fields
from typing import Any

from agentgym_gym._template_text import TemplateText
from agentgym_gym.actions import Grammar
from agentgym_gym.formats import Format, get_format
from agentgym_gym.rollout._plain_data import register_type
from agentgym_gym.spaces import ReplySpace

__all__: list[str] = []


def _action(module: str, name: str, values: dict[str, Any]) -> TemplateText:
    """Create an action, or a part of one, of a class that this process or this library has.

    Raises:
        TypeError: There is no such class of actions.
    """
    if module.startswith("agentgym_gym.envs."):
        importlib.import_module(module)
    found: Any = sys.modules.get(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    if not (isinstance(found, type) and issubclass(found, TemplateText)):
        raise TypeError(f"{module}:{name} is not a class of actions that this process has imported")
    return found(**values)


def _arguments(action: Any) -> dict[str, Any]:
    """Return the arguments of `_action` for an action."""
    values = {field.name: getattr(action, field.name) for field in fields(action)}
    return {"module": type(action).__module__, "name": type(action).__qualname__, "values": values}


register_type(TemplateText, _arguments, _action, subclasses=True)
register_type(Grammar, lambda grammar: {"examples": grammar.examples, "exclusive": grammar.exclusive})
register_type(Format, lambda form: {"action_format": form.name}, get_format, subclasses=True)
register_type(ReplySpace, lambda space: {"action_format": space.action_format, "grammar": space.grammar})
