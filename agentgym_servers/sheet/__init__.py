"""The Sheet server: AgentGym's protocol over spreadsheets in memory, without Google.

`server` has its application and imports what the extra installs; `world` has the tasks, `book` what can be
done with a sheet. Where it differs from AgentGym's server is told by the ``local_quirks`` of the environment.
"""

from agentgym_gym.local_servers import ServerKind

__all__ = ["SERVER"]

SERVER = ServerKind("Sheet", "agentgym_servers.sheet._server:create_app", takes=("seed",), extra="servers")
