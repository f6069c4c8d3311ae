"""The BabyAI server: AgentGym's protocol over the levels of `minigrid`.

`server` has the routes, `game` plays a task, and `solution` plans one. Where it differs from AgentGym's
server is in ``local_quirks`` of `agentgym_gym.envs.babyai`.
"""

from agentgym_gym.local_servers import ServerKind

__all__ = ["SERVER"]

SERVER = ServerKind(
    "BabyAI",
    "agentgym_servers.babyai._server:create_app",
    needs=("minigrid",),
    takes=("seed",),
    extra="servers",
)
