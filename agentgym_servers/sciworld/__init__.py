"""The SciWorld server: AgentGym's protocol over the simulator of the package `scienceworld`.

`_server` has the routes, `_game` plays a task, and `_workers` runs the simulators in a few Java processes
(`_simulator`). The ``local_quirks`` of `agentgym_gym.envs.sciworld` list the differences from AgentGym's
server.
"""

from agentgym_gym.local_servers import ServerKind

__all__ = ["SERVER"]

SERVER = ServerKind(
    "SciWorld",
    "agentgym_servers.sciworld._server:create_app",
    needs=("scienceworld", "py4j"),
    takes=("simplifications",),
    extra="servers-sciworld",
    check="agentgym_servers.sciworld._java:missing_java",
    program="Java",
)
