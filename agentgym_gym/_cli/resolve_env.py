"""Options that name an environment, the same for every command."""

from __future__ import annotations

from collections.abc import Collection
from typing import Annotated, TypeAlias

from agentgym_gym.errors import BadOption
from agentgym_gym.evaluate._resolve import Chosen, find_modules_here, resolve
from agentgym_gym.options import Option

__all__ = [
    "TASKS_HELP",
    "Chosen",
    "EnvKwargs",
    "ExtraEnvs",
    "Name",
    "find_modules_here",
    "register_envs",
    "resolve",
]

TASKS_HELP = "tasks, such as 0:50, 1,2,5, all, or an item file"
"""The help of options for tasks; the commands explain the syntax in their descriptions."""


Name: TypeAlias = Annotated[
    str,
    Option(
        "environment: id, name, or MODULE:ID of another package",
        positional=True,
        metavar="ID",
        completes="environment",
    ),
]

EnvKwargs: TypeAlias = Annotated[
    str,
    Option("more arguments of the environment, as a JSON object", metavar="JSON"),
]


ExtraEnvs: TypeAlias = Annotated[
    list[str] | None,
    Option(
        "environment of another package, to add to the catalogue; repeatable",
        flag="--env",
        metavar="MODULE:ID",
    ),
]


def register_envs(names: Collection[str] | None) -> None:
    """Import the modules of ``--env``, which add their environments to the catalogue.

    Raises:
        UnknownEnvironment: An environment does not exist, or its module cannot be imported.
        BadOption: An environment has no HTTP server.
    """
    for name in names or ():
        chosen = resolve(name)
        if chosen.environment is None:
            raise BadOption(
                "env", name, "an environment that its module adds by agentgym_gym.register, with a server"
            )
