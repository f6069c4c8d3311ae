"""The Maze server: AgentGym's protocol over LMRL-Gym's maze.

`_server` has the application and imports packages of the extra; `_game` plays a task. The ``local_quirks`` of
the environment list the differences from AgentGym's server.
"""

from agentgym_gym.local_servers import ServerKind

__all__ = ["SERVER"]

SERVER = ServerKind("Maze", "agentgym_servers.maze._server:create_app", extra="servers")
