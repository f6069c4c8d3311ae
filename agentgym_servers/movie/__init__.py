"""The Movie server: AgentGym's protocol over questions about films that are invented here.

`server` has its application and imports what the extra installs. `world` has the tasks, and `service` the
functions.
Where it differs from AgentGym's server is told by the ``local_quirks`` of the environment.
"""

from agentgym_gym.local_servers import ServerKind

__all__ = ["SERVER"]

SERVER = ServerKind("Movie", "agentgym_servers.movie._server:create_app", takes=("seed",), extra="servers")
