"""The Movie server: AgentGym's protocol over questions about invented films.

`_server` has the application and imports packages of the extra. `_world` has the tasks, and `_service` the
functions. The ``local_quirks`` of the environment list the differences from AgentGym's server.
"""

from agentgym_gym.local_servers import ServerKind

__all__ = ["SERVER"]

SERVER = ServerKind("Movie", "agentgym_servers.movie._server:create_app", takes=("seed",), extra="servers")
