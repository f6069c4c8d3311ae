"""The MiniWoB server: a protocol of this project over the pages of the package ``miniwob``, in Chromium.

`_server` has the routes. An `_episode` plays a task in its own browser context; `_pages` serves the files of
the package to it. The `_oracle` plays `_solutions`, which read the page as text.
"""

from agentgym_gym.local_servers import ServerKind

__all__ = ["SERVER"]

SERVER = ServerKind(
    "MiniWoB",
    "agentgym_servers.miniwob._server:create_app",
    needs=("miniwob", "playwright", "psutil"),
    extra="servers-miniwob",
    check="agentgym_servers._browser.executable:missing_chromium",
    program="Chromium",
    most_envs="agentgym_servers._browser.memory:most_envs",
)
