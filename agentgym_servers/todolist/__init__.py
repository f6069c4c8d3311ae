"""The TODOList server: AgentGym's protocol over accounts in memory, one for each environment.

`server` has its application and imports what the extra installs; `world` has the tasks, `account` what can be
done in one. Where it differs from AgentGym's server is told by the ``local_quirks`` of the environment.
"""

from agentgym_gym.local_servers import ServerKind

__all__ = ["SERVER"]

SERVER = ServerKind(
    "TODOList", "agentgym_servers.todolist._server:create_app", takes=("seed",), extra="servers"
)
