"""AgentGym's HTTP environments as text gymnasium environments with typed actions.

Importing this package registers every ``agentgym/*`` id::

    import agentgym_gym
    import gymnasium

    env = gymnasium.make("agentgym/TextCraft-v0")

``gymnasium.make("agentgym_gym:agentgym/TextCraft-v0")`` does the import by itself.
"""

from __future__ import annotations

from agentgym_gym import errors
from agentgym_gym._episode import StepResult
from agentgym_gym._http.limits import Limits, Stats
from agentgym_gym._options import FormatName, HttpClient
from agentgym_gym._version import __version__
from agentgym_gym.actions import Action, Grammar, ListOf, StepAction, Style, Thought, ToolCall, Verbatim
from agentgym_gym.aio import AsyncAgentGymEnv
from agentgym_gym.arguments import Argument, Choice, Integer, Name, Text
from agentgym_gym.calls import Body, Call, Flow, Reply, exchange
from agentgym_gym.catalogue import BUILT_IN, Environment, environments, find, register
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
    "exchange",
    "find",
    "register",
]

for _environment in BUILT_IN:
    register(_environment)
