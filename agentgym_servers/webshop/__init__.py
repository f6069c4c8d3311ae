"""The WebShop server: AgentGym's protocol over this project's own shop.

`_server` has the routes, `_world` generates products and tasks from a seed, `_twin` words them as on
AgentGym's server, `_data_folder` loads WebShop's own files, `_session` plays one task, `_search` ranks
products, and `_reward` scores a purchase. The ``local_quirks`` of `agentgym_gym.envs.webshop` list the
differences from AgentGym's server.

This module imports none of them: the oracle needs only `_world`, and only the standard library.
"""

from agentgym_gym.local_servers import ServerKind

__all__ = ["SERVER"]

SERVER = ServerKind(
    "WebShop",
    "agentgym_servers.webshop._server:create_app",
    needs=("bm25s", "rapidfuzz"),
    takes=("seed", "data", "twin"),
    extra="servers",
)
