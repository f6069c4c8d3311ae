"""The ALFWorld server: AgentGym's protocol over a household engine of this project.

`_server` has the application. `_object_kinds`, `_rooms` and `_places` have the kinds of things, the rooms and
where things lie, from the counts in ``data``. `_tasks` has the tasks, `_house` the commands, and `_game`
plays one task. `_solution` looks for things as a player must, and `_measures` compares the houses with
ALFWorld's. `_textworld` finds ALFWorld's own games and plays them in processes of `_textworld_worker`. The
``local_quirks`` of the environment list the differences from AgentGym's server.
"""

from agentgym_gym.local_servers import ServerKind

__all__ = ["SERVER"]

SERVER = ServerKind(
    "ALFWorld", "agentgym_servers.alfworld._server:create_app", takes=("seed", "data"), extra="servers"
)
"""Household tasks in text in generated rooms."""
