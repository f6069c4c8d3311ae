"""The SQLGym server: AgentGym's protocol over databases that are made here, or over BIRD's.

`server` has the routes. A statement is executed by a process of its own (`judges`, `worker`), which can read
one database and nothing else. What is asked is of a `world`, or of BIRD's files (`bird`). Where it differs
from AgentGym's server is in ``local_quirks`` of `agentgym_gym.envs.sqlgym`.

This module imports none of them: the oracle needs `world` alone, and no package beside Python.
"""

from agentgym_gym.local_servers import ServerKind

__all__ = ["SERVER"]

SERVER = ServerKind(
    "SQLGym", "agentgym_servers.sqlgym._server:create_app", takes=("seed", "data"), extra="servers"
)
