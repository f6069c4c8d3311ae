"""The Wordle server: AgentGym's protocol over this project's list of words, or the user's.

`_server` has the application and imports packages of the extra; `_world` has the words and tasks, and `_game`
plays one. The ``local_quirks`` of the environment list the differences from AgentGym's server.
"""

from agentgym_gym.local_servers import ServerKind

__all__ = ["SERVER"]

SERVER = ServerKind(
    "Wordle", "agentgym_servers.wordle._server:create_app", takes=("seed", "data", "twin"), extra="servers"
)
