"""The Maze server: AgentGym's protocol over LMRL-Gym's maze.

`server` has its application and imports what the extra installs; `game` plays a task. Where it differs from
AgentGym's server is told by the ``local_quirks`` of the environment.
"""

from agentgym_gym.local_servers import ServerKind

__all__ = ["SERVER"]

SERVER = ServerKind("Maze", "agentgym_servers.maze._server:create_app", extra="servers")
