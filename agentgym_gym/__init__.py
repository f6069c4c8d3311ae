"""AgentGym's HTTP environments as text gymnasium environments with typed actions.

Importing this package registers every ``agentgym/*`` id::

    import agentgym_gym
    import gymnasium

    env = gymnasium.make("agentgym/TextCraft-v0")

``gymnasium.make("agentgym_gym:agentgym/TextCraft-v0")`` does the import by itself.
"""

from __future__ import annotations

from agentgym_gym import errors
from agentgym_gym._http.limits import Limits, Stats
from agentgym_gym.actions import Action, Grammar
from agentgym_gym.aio import AsyncAgentGymEnv
from agentgym_gym.catalogue import BUILT_IN, Environment, environments, find, register
from agentgym_gym.env import AgentGymEnv
from agentgym_gym.formats import FORMATS, Format
from agentgym_gym.spaces import ReplySpace, TextSpace
from agentgym_gym.vector import AgentGymVectorEnv
from agentgym_gym.wire import Wire

__all__ = [
    "FORMATS",
    "Action",
    "AgentGymEnv",
    "AgentGymVectorEnv",
    "AsyncAgentGymEnv",
    "Environment",
    "Format",
    "Grammar",
    "Limits",
    "ReplySpace",
    "Stats",
    "TextSpace",
    "Wire",
    "__version__",
    "environments",
    "errors",
    "find",
    "register",
]

__version__ = "0.1.0"

for _environment in BUILT_IN:
    register(_environment)
