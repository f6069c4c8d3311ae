"""AgentGym's HTTP environments as text-based gymnasium environments with typed actions.

Importing this package registers every ``agentgym/*`` id; gymnasium 1.0 and later requires that import::

    import agentgym_gym
    import gymnasium

    env = gymnasium.make("agentgym/TextCraft-v0")

``gymnasium.make("agentgym_gym:agentgym/TextCraft-v0")`` imports the package automatically.

The import loads only the catalogue and the errors. Every other name loads its module on first access.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from agentgym_gym import errors
from agentgym_gym._version import __version__
from agentgym_gym.catalogue import BUILT_IN, Environment, environments, find, register

if TYPE_CHECKING:
    from agentgym_gym._env_options import FormatName, HttpClient
    from agentgym_gym._http.limits import Limits, Stats
    from agentgym_gym._remote_episode import StepResult
    from agentgym_gym.actions import Action, Grammar, ListOf, StepAction, Style, Thought, ToolCall, Verbatim
    from agentgym_gym.aio import AsyncAgentGymEnv
    from agentgym_gym.arguments import Argument, Choice, Integer, Name, Text
    from agentgym_gym.calls import Body, Call, Flow, Reply
    from agentgym_gym.env import AgentGymEnv
    from agentgym_gym.formats import FORMATS, Format
    from agentgym_gym.spaces import ReplySpace, TextSpace
    from agentgym_gym.vector import AgentGymVectorEnv
    from agentgym_gym.wire import Outcome, Score, Start, Wire

__all__ = [
    "FORMATS",
    "Action",
    "AgentGymEnv",
    "AgentGymVectorEnv",
    "Argument",
    "AsyncAgentGymEnv",
    "Body",
    "Call",
    "Choice",
    "Environment",
    "Flow",
    "Format",
    "FormatName",
    "Grammar",
    "HttpClient",
    "Integer",
    "Limits",
    "ListOf",
    "Name",
    "Outcome",
    "Reply",
    "ReplySpace",
    "Score",
    "Start",
    "Stats",
    "StepAction",
    "StepResult",
    "Style",
    "Text",
    "TextSpace",
    "Thought",
    "ToolCall",
    "Verbatim",
    "Wire",
    "__version__",
    "environments",
    "errors",
    "find",
    "register",
]

_LAZY = {
    "_remote_episode": ("StepResult",),
    "_http.limits": ("Limits", "Stats"),
    "_env_options": ("FormatName", "HttpClient"),
    "actions": ("Action", "Grammar", "ListOf", "StepAction", "Style", "Thought", "ToolCall", "Verbatim"),
    "aio": ("AsyncAgentGymEnv",),
    "arguments": ("Argument", "Choice", "Integer", "Name", "Text"),
    "calls": ("Body", "Call", "Flow", "Reply"),
    "env": ("AgentGymEnv",),
    "formats": ("FORMATS", "Format"),
    "spaces": ("ReplySpace", "TextSpace"),
    "vector": ("AgentGymVectorEnv",),
    "wire": ("Outcome", "Score", "Start", "Wire"),
}
"""The names above that are imported on first access, by module."""

_MODULE_OF = {name: module for module, names in _LAZY.items() for name in names}

if not TYPE_CHECKING:  # with a `__getattr__`, type checkers would accept any name

    def __getattr__(name: str) -> object:
        """Import a public name, or one of the public modules of `_LAZY`, on first access.

        Raises:
            AttributeError: The package has no such name.
        """
        if name in _MODULE_OF:
            value = getattr(import_module(f"{__name__}.{_MODULE_OF[name]}"), name)
            globals()[name] = value
            return value
        if name in _LAZY and not name.startswith("_"):
            return import_module(f"{__name__}.{name}")
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    modules = (module for module in _LAZY if not module.startswith("_"))
    return sorted({*globals(), *__all__, *modules})


for _environment in BUILT_IN:
    register(_environment)
