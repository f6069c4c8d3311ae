"""``agentgym serve``."""

from __future__ import annotations

from typing import Annotated

import typer

from agentgym_gym import servers
from agentgym_gym.cli.names import resolve
from agentgym_gym.errors import BadOption

__all__ = ["serve"]


def _complete(incomplete: str) -> list[str]:
    return [name for name in servers.SERVERS if name.startswith(incomplete)]


def serve(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME",
            help="Which environment, such as textcraft.",
            autocompletion=_complete,
        ),
    ],
    host: Annotated[str, typer.Option(help="The address of this machine to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="The port to listen on; 0 takes any free one.")] = 0,
    max_envs: Annotated[
        int | None, typer.Option(min=1, help="How many environments to hold at a time; by default 4096.")
    ] = None,
) -> None:
    """Serve an environment from here until Ctrl-C.

    Prints where it serves once it does. Anybody who can reach the address can play.
    """
    chosen = resolve(name)
    kind = None if chosen.environment is None else chosen.environment.local_server
    if kind is None:
        have = ", ".join(servers.SERVERS)
        raise BadOption(f"this project has no server of its own for {chosen.id}: it has them for {have}")
    servers.serve(kind, host=host, port=port, max_envs=max_envs)
