"""``agentgym serve``."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from agentgym_gym import local_servers
from agentgym_gym._cli.declared import command
from agentgym_gym._cli.resolve_env import resolve
from agentgym_gym.errors import BadOption

__all__ = ["ServeOptions", "serve"]


def _complete(incomplete: str) -> list[str]:
    return [name for name in (*local_servers.servers(), local_servers.ALL) if name.startswith(incomplete)]


@dataclass(frozen=True, kw_only=True)
class ServeOptions:
    """The options of ``agentgym serve``."""

    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME",
            help="environment, such as textcraft, or all",
            autocompletion=_complete,
        ),
    ]
    host: Annotated[str, typer.Option(help="address to listen on")] = "127.0.0.1"
    port: Annotated[int, typer.Option(help="port to listen on (0 = any free port)")] = 0
    max_envs: Annotated[
        int | None,
        typer.Option(min=1, help="maximum number of open environments", show_default="4096"),
    ] = None
    seed: Annotated[int | None, typer.Option(min=0, help="random seed of the generated world")] = None
    data: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            exists=True,
            file_okay=False,
            help="folder with your own world instead of a generated one",
        ),
    ] = None
    allow_host: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="host name to accept besides loopback names (repeatable)"),
    ] = None
    twin: Annotated[bool, typer.Option("--twin", help="play exactly as AgentGym's server")] = False


@command(ServeOptions)
def serve(options: ServeOptions) -> None:
    """Run a local server until Ctrl-C.

    The server prints its address once it accepts connections; every client that can reach the address can use
    it. With all, each environment is served under its own path.
    """
    local_servers.serve(
        options.name if ":" not in options.name else _server_path(options.name),
        host=options.host,
        port=options.port,
        max_envs=options.max_envs,
        seed=options.seed,
        data=options.data,
        allow_hosts=options.allow_host or (),
        twin=options.twin,
    )


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
