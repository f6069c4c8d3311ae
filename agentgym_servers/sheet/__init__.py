"""The Sheet server: AgentGym's protocol over in-memory spreadsheets, without Google.

`_server` has the application and imports packages of the extra; `_world` has the tasks, `_book` the
operations on a sheet. The ``local_quirks`` of the environment list the differences from AgentGym's server.
"""

from agentgym_gym.local_servers import ServerKind

__all__ = ["SERVER"]

SERVER = ServerKind("Sheet", "agentgym_servers.sheet._server:create_app", takes=("seed",), extra="servers")
