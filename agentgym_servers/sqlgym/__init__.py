"""The SQLGym server: AgentGym's protocol over generated databases, or over BIRD's.

`_server` has the routes. Separate processes execute the statements (`_statement_process`,
`_statement_runner`); each can read one database and nothing else. `_judge` compares the rows of a statement
with the rows of the task's reference. The questions come from a `_world`, or from BIRD's files
(`_data_folder`). The ``local_quirks`` of `agentgym_gym.envs.sqlgym` list the differences from AgentGym's
server.
"""

from agentgym_gym.local_servers import ServerKind

__all__ = ["SERVER"]

SERVER = ServerKind(
    "SQLGym", "agentgym_servers.sqlgym._server:create_app", takes=("seed", "data"), extra="servers"
)
