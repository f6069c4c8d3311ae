"""The TODOList server: AgentGym's protocol over in-memory accounts, one per environment.

`_server` has the application and imports packages of the extra; `_world` has the tasks, `_account` the
operations on an account. The ``local_quirks`` of the environment list the differences from AgentGym's server.
"""

from agentgym_gym.local_servers import ServerKind

__all__ = ["SERVER"]

SERVER = ServerKind(
    "TODOList", "agentgym_servers.todolist._server:create_app", takes=("seed",), extra="servers"
)
