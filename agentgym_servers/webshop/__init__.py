"""The WebShop server: AgentGym's protocol over a shop of this project's own.

`server` has the routes, `world` makes products and tasks from a seed, `official` loads WebShop's own files,
`session` is one task being played, `search` ranks products, and `reward` says what a purchase is worth. Where
it differs from AgentGym's server is in ``local_quirks`` of `agentgym_gym.envs.webshop`.

This module imports none of them: the oracle needs `world` alone, and no package beside Python.
"""

from agentgym_gym.local_servers import ServerKind

__all__ = ["SERVER"]

SERVER = ServerKind(
    "WebShop",
    "agentgym_servers.webshop._server:create_app",
    needs=("bm25s", "rapidfuzz"),
    takes=("seed", "data"),
    extra="servers",
)
