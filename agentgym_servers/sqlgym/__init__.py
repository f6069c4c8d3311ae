"""The SQLGym server: AgentGym's protocol over generated databases, or over BIRD's.

`_server` has the routes. A separate process executes each statement (`_worker_pool`, `_worker`); it can read
one database and nothing else. The questions come from a `_world`, or from BIRD's files (`_bird`). The
``local_quirks`` of `agentgym_gym.envs.sqlgym` list the differences from AgentGym's server.
"""

from agentgym_gym.local_servers import ServerKind

__all__ = ["SERVER"]

SERVER = ServerKind(
    "SQLGym", "agentgym_servers.sqlgym._server:create_app", takes=("seed", "data"), extra="servers"
)
