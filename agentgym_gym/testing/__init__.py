"""Tools for testing agents, rollouts and servers.

- `FaultyProxy` injects faults into calls to a server over real sockets, for any client. To run it as a
  program: ``python -m agentgym_gym.testing URL``.
- `FaultyTransport` does the same without sockets, for ``AgentGymEnv(http_client=...)``.
- `ScriptedAgent` and `FunctionAgent` return predefined replies, in an evaluation or in your own loop.
- :mod:`agentgym_gym.testing.strategies` has hypothesis strategies for replies, tasks and whole episodes. For
  typed actions, use ``hypothesis.strategies.from_type``.
"""

from __future__ import annotations

from agentgym_gym.testing._agents import FunctionAgent, ScriptedAgent
from agentgym_gym.testing._faults import KINDS, SEEN_AS, Faults, Kind
from agentgym_gym.testing._proxy import FaultyProxy
from agentgym_gym.testing._transport import FaultyTransport

__all__ = [
    "KINDS",
    "SEEN_AS",
    "Faults",
    "FaultyProxy",
    "FaultyTransport",
    "FunctionAgent",
    "Kind",
    "ScriptedAgent",
]
