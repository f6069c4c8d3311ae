"""The BabyAI server: AgentGym's protocol over the levels of `minigrid`.

`_server` has the routes, `_game` plays a task, and `_solution` plans one. The ``local_quirks`` of
`agentgym_gym.envs.babyai` list the differences from AgentGym's server.
"""

from agentgym_gym.local_servers import ServerKind

__all__ = ["SERVER"]

SERVER = ServerKind(
    "BabyAI",
    "agentgym_servers.babyai._server:create_app",
    needs=("minigrid",),
    takes=("seed", "twin"),
    extra="servers",
)
