"""Tools to test agents, rollouts and servers with.

- `FaultyProxy` makes calls to a server go wrong over real sockets, for whatever talks to it; as a program,
  ``python -m agentgym_gym.testing URL``;
- `FaultyTransport` does the same without a socket, for ``AgentGymEnv(http_client=...)``;
- `ScriptedAgent` and `FunctionAgent` play given replies, in an evaluation or by hand;
- :mod:`agentgym_gym.testing.strategies` has hypothesis strategies of replies, tasks and whole episodes. Typed
  actions need none of it: ``hypothesis.strategies.from_type`` knows them.
"""

from __future__ import annotations

from agentgym_gym.testing._agents import FunctionAgent, ScriptedAgent
from agentgym_gym.testing._created_envs import Created, Journal
from agentgym_gym.testing._faults import KINDS, SEEN_AS, Faults, Kind
from agentgym_gym.testing._proxy import FaultyProxy
from agentgym_gym.testing._transport import FaultyTransport

__all__ = [
    "KINDS",
    "SEEN_AS",
    "Created",
    "Faults",
    "FaultyProxy",
    "FaultyTransport",
    "FunctionAgent",
    "Journal",
    "Kind",
    "ScriptedAgent",
]
