"""The SearchQA server: `_server` implements AgentGym's protocol, `_world` generates documents and tasks."""

from agentgym_gym.local_servers import ServerKind

__all__ = ["SERVER"]

SERVER = ServerKind(
    "SearchQA",
    "agentgym_servers.searchqa._server:create_app",
    needs=("bm25s",),
    takes=("seed", "data"),
    extra="servers",
)
