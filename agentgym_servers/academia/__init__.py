"""The Academia server: AgentGym's protocol over a small in-memory world of papers and authors.

`_server` has the application and imports packages of the extra; `_world` has the tasks, `_network` the papers
and authors. The ``local_quirks`` of the environment list the differences from AgentGym's server.
"""

from agentgym_gym.local_servers import ServerKind

__all__ = ["SERVER"]

SERVER = ServerKind(
    "Academia", "agentgym_servers.academia._server:create_app", takes=("seed",), extra="servers"
)
