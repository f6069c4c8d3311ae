"""The WebArena server: AgentGym's protocol over sites of our own in Chromium, or over a user's sites.

`_server` has the routes. An `_episode` plays a task in a browser context of its own; `sites` are served to it
by `_site_server`, from a state of its own. The tasks are made by `tasks`, or read by `_data`. The
``local_quirks`` of `agentgym_gym.envs.webarena` list the differences from AgentGym's server.
"""

from agentgym_gym.local_servers import ServerKind

__all__ = ["SERVER"]

SERVER = ServerKind(
    "WebArena",
    "agentgym_servers.webarena._server:create_app",
    needs=("playwright",),
    takes=("seed", "data"),
    extra="servers-webarena",
    check="agentgym_servers._browser.executable:missing_chromium",
    program="Chromium",
)
