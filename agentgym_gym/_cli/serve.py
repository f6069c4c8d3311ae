"""``agentgym serve``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from agentgym_gym import local_servers
from agentgym_gym._cli.resolve_env import resolve
from agentgym_gym.errors import BadOption

__all__ = ["serve"]


def _complete(incomplete: str) -> list[str]:
    return [name for name in (*local_servers.servers(), local_servers.ALL) if name.startswith(incomplete)]


def serve(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME",
            help="Which environment, such as textcraft; or all, each below the path of its name.",
            autocompletion=_complete,
        ),
    ],
    host: Annotated[str, typer.Option(help="The address of this machine to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="The port to listen on; 0 takes any free one.")] = 0,
    max_envs: Annotated[
        int | None, typer.Option(min=1, help="How many environments to hold at a time; by default 4096.")
    ] = None,
    seed: Annotated[int | None, typer.Option(min=0, help="Seed of the world that is made.")] = None,
    data: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", exists=True, file_okay=False, help="Folder with a world of your own, in its place."
        ),
    ] = None,
) -> None:
    """Serve an environment from here until Ctrl-C.

    Prints where it serves once it does. Anybody who can reach the address can play.
    """
    local_servers.serve(_server(name), host=host, port=port, max_envs=max_envs, seed=seed, data=data)


def _server(name: str) -> str:
    """Return the server name for `local_servers.serve` from the name of an environment or server.

    Raises:
        UnknownEnvironment: The environment does not exist.
        BadOption: This project has no server for the environment.
    """
    if name.lower() in {local_servers.ALL, *local_servers.servers()}:
        return name
    chosen = resolve(name)
    kind = None if chosen.environment is None else chosen.environment.local_server
    if kind is None:
        have = ", ".join(local_servers.servers())
        raise BadOption(f"this project has no server of its own for {chosen.id}: it has them for {have}")
    return kind
