"""The local SearchQA server: `server` speaks AgentGym's protocol, `world` makes what it plays from a seed."""

from agentgym_gym.local_servers import ServerKind

__all__ = ["SERVER"]

SERVER = ServerKind(
    "SearchQA",
    "agentgym_servers.searchqa._server:create_app",
    needs=("bm25s",),
    takes=("seed", "data"),
    extra="servers",
)
