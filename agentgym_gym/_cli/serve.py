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
            help="Environment, such as textcraft; or all, each under its own path.",
            autocompletion=_complete,
        ),
    ],
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port to listen on (0 = any free one).")] = 0,
    max_envs: Annotated[
        int | None, typer.Option(min=1, help="Limit of environments at a time; 4096 by default.")
    ] = None,
    seed: Annotated[int | None, typer.Option(min=0, help="Seed of the generated world.")] = None,
    data: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            exists=True,
            file_okay=False,
            help="Folder with your own world, instead of a generated one.",
        ),
    ] = None,
    allow_host: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Host name accepted besides loopback names; may be repeated."),
    ] = None,
    twin: Annotated[bool, typer.Option("--twin", help="Play exactly as AgentGym's server.")] = False,
) -> None:
    """Run a local server until Ctrl-C.

    It prints its address once it accepts connections. Anybody who can reach the address can use it.
    """
    path = name if ":" not in name else _server_path(name)
    options = {"max_envs": max_envs, "seed": seed, "data": data, "twin": twin}
    local_servers.serve(path, host=host, port=port, allow_hosts=allow_host or (), **options)


def _server_path(name: str) -> str:
    """Return the import path of the server of a user's environment, ``MODULE:ID``.

    Raises:
        UnknownEnvironment: The environment does not exist.
        BadOption: The environment has no local server.
    """
    chosen = resolve(name)
    path = None if chosen.environment is None else chosen.environment.local_server
    if path is None:
        available = ", ".join(local_servers.servers())
        raise BadOption(f"{chosen.id} has no local server; available: {available}")
    return path
