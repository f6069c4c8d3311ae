"""Tools for testing agents, rollouts and servers.

- `FaultyProxy` injects faults into calls to a server over real sockets, for any client. To run it as a
  program: ``python -m agentgym_gym.testing URL``.
- `FaultyTransport` does the same without sockets, for ``AgentGymEnv(http_client=...)``.
- `ScriptedAgent` and `FunctionAgent` return predefined replies, in an evaluation or in your own loop.
- `audit` checks whether an environment is fit to train and to test on: any gymnasium environment. It needs
  the extra ``testing``.
- :mod:`agentgym_gym.testing.strategies` has hypothesis strategies for replies, tasks and whole episodes. For
  typed actions, use ``hypothesis.strategies.from_type``.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from agentgym_gym.testing._agents import FunctionAgent, ScriptedAgent
from agentgym_gym.testing._faults import KINDS, SEEN_AS, Faults, Kind
from agentgym_gym.testing._proxy import FaultyProxy
from agentgym_gym.testing._transport import FaultyTransport

if TYPE_CHECKING:
    from agentgym_gym.testing._audit.audit import audit
    from agentgym_gym.testing._audit.findings import Defect, PropertyResult
    from agentgym_gym.testing._audit.properties import PROPERTIES
    from agentgym_gym.testing._audit.report import Audit, AuditFailed

__all__ = [
    "KINDS",
    "PROPERTIES",
    "SEEN_AS",
    "Audit",
    "AuditFailed",
    "Defect",
    "Faults",
    "FaultyProxy",
    "FaultyTransport",
    "FunctionAgent",
    "Kind",
    "PropertyResult",
    "ScriptedAgent",
    "audit",
]

_LAZY = {
    "audit": ("audit",),
    "findings": ("Defect", "PropertyResult"),
    "properties": ("PROPERTIES",),
    "report": ("Audit", "AuditFailed"),
}
"""The names of an audit by module: importing them takes longer than the rest of this package."""

_MODULE_OF = {name: module for module, names in _LAZY.items() for name in names}

if not TYPE_CHECKING:  # with a `__getattr__`, type checkers would accept any name

    def __getattr__(name: str) -> object:
        """Import a public name on first access.

        Raises:
            AttributeError: The package has no such name.
        """
        if name not in _MODULE_OF:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        module = import_module(f"{__name__}._audit.{_MODULE_OF[name]}")
        value = globals()[name] = getattr(module, name)
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
