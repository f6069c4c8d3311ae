"""The Academia server: AgentGym's protocol over a small world of papers and authors in memory.

`server` has its application and imports what the extra installs; `world` has the tasks, `network` the papers
and authors. Where it differs from AgentGym's server is told by the ``local_quirks`` of the environment.
"""

from agentgym_gym.local_servers import ServerKind

__all__ = ["SERVER"]

SERVER = ServerKind(
    "Academia", "agentgym_servers.academia._server:create_app", takes=("seed",), extra="servers"
)
