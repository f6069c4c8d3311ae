"""The Weather server: AgentGym's protocol over questions about invented weather.

`_server` has the application and imports packages of the extra. `_world` has the tasks, and `_service` the
functions. The ``local_quirks`` of the environment list the differences from AgentGym's server.
"""

from agentgym_gym.local_servers import ServerKind

__all__ = ["SERVER"]

SERVER = ServerKind(
    "Weather", "agentgym_servers.weather._server:create_app", takes=("seed",), extra="servers"
)
