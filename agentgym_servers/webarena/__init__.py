"""The WebArena server: AgentGym's protocol over our own sites in Chromium, or a user's sites.

`_server` has the routes. An `_episode` plays a task in its own browser context; `_site_server` serves the
`_sites` to it, from its own state. `_evaluation` scores it, by `_answers` and a `_judge`. `_templates`
generate the tasks, or `_data_folder` reads them. The ``local_quirks`` of `agentgym_gym.envs.webarena` list
the differences from AgentGym's server.
"""

from agentgym_gym.local_servers import ServerKind

__all__ = ["SERVER"]

SERVER = ServerKind(
    "WebArena",
    "agentgym_servers.webarena._server:create_app",
    needs=("nltk", "playwright", "psutil"),
    takes=("seed", "data", "judge", "judge_model"),
    extra="servers-webarena",
    check="agentgym_servers._browser.executable:missing_chromium",
    program="Chromium",
    most_envs="agentgym_servers._browser.memory:most_envs",
)
