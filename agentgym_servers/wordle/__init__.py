"""The Wordle server: AgentGym's protocol over words that were chosen here, or the user's.

`server` has its application and imports what the extra installs; `world` has the words and tasks, and `game`
plays one. Where it differs from AgentGym's server is told by the ``local_quirks`` of the environment.
"""

from agentgym_gym.local_servers import ServerKind

__all__ = ["SERVER"]

SERVER = ServerKind(
    "Wordle", "agentgym_servers.wordle._server:create_app", takes=("seed", "data"), extra="servers"
)
