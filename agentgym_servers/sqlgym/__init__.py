"""The SQLGym server: AgentGym's protocol over databases that are made here, or over BIRD's.

`_server` has the routes. A process of its own executes a statement (`_worker_pool`, `_worker`); it can read
one database and nothing else. The questions are those of a `_world`, or of BIRD's files (`_bird`).
``local_quirks`` of `agentgym_gym.envs.sqlgym` lists the differences to AgentGym's server.
"""

from agentgym_gym.local_servers import ServerKind

__all__ = ["SERVER"]

SERVER = ServerKind(
    "SQLGym", "agentgym_servers.sqlgym._server:create_app", takes=("seed", "data"), extra="servers"
)
