"""``agentgym serve``: run local servers."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from agentgym_gym import local_servers
from agentgym_gym._cli.declared import command
from agentgym_gym.errors import BadOption
from agentgym_gym.evaluate._resolve import resolve
from agentgym_gym.options import Option

__all__ = ["ServeOptions", "serve"]

LOOPBACK = "127.0.0.1"


def _complete(incomplete: str) -> list[str]:
    return [name for name in (*local_servers.servers(), local_servers.ALL) if name.startswith(incomplete)]


@dataclass(frozen=True, kw_only=True)
class ServeOptions:
    """The options of ``agentgym serve``."""

    name: Annotated[
        str,
        Option("environment, such as textcraft, or all", positional=True, metavar="NAME", completes="server"),
    ]
    host: Annotated[str | None, Option("address to listen on", default=LOOPBACK)] = None
    port: Annotated[int, Option("port to listen on (0 = any free port)")] = 0
    max_envs: Annotated[
        int | None,
        Option("maximum number of open environments", least=1, default="4096, or fewer by memory"),
    ] = None
    seed: Annotated[int | None, Option("random seed of the generated world", least=0)] = None
    data: Annotated[
        Path | None,
        Option("folder with your own world instead of a generated one", metavar="DIR", values="folder"),
    ] = None
    allow_host: Annotated[
        list[str] | None,
        Option("host name to accept besides loopback names (repeatable)", metavar="NAME"),
    ] = None
    twin: Annotated[bool, Option("reproduce AgentGym's server exactly, bugs included")] = False
    judge: Annotated[
        str | None,
        Option("base URL of a chat endpoint that judges answers", metavar="URL"),
    ] = None
    judge_model: Annotated[str | None, Option("model of the judge", metavar="NAME")] = None
    simplifications: Annotated[
        str | None, Option("simplified rules of SciWorld, such as easy", metavar="NAMES")
    ] = None
    ray: Annotated[
        str | None,
        Option("serve on a Ray cluster: auto, HOST:PORT or ray://HOST:PORT", metavar="ADDRESS"),
    ] = None
    per_machine: Annotated[
        int | None,
        Option("servers on each machine of the Ray cluster", least=1, default="1"),
    ] = None


@command(
    ServeOptions,
    {
        "Server": ("host", "port", "max_envs", "allow_host"),
        "World": ("seed", "data", "twin", "simplifications", "judge", "judge_model"),
        "Ray cluster": ("ray", "per_machine"),
    },
    examples=(
        "agentgym serve textcraft --port 36001",
        "agentgym serve sciworld --simplifications easy",
        "agentgym serve webarena --data tasks --max-envs 16",
    ),
)
def serve(options: ServeOptions) -> None:
    """Run a local server until Ctrl-C.

    The server prints its address once it accepts connections; every client that can reach the address can use
    it. With all, each environment is served under its own path.

    With --ray, a server listens on its machine's address in the cluster, and several of one machine on
    consecutive ports. A server that ends is started again on its port.
    """
    name = options.name if ":" not in options.name else _server_path(options.name)
    if options.ray is not None:
        _serve_on_ray(name, options, options.ray)
        return
    if options.per_machine is not None:
        raise BadOption("--per-machine is for a Ray cluster: add --ray, or remove it")
    local_servers.serve(
        name,
        host=options.host or LOOPBACK,
        port=options.port,
        max_envs=options.max_envs,
        seed=options.seed,
        data=options.data,
        allow_hosts=options.allow_host or (),
        twin=options.twin,
        judge=options.judge,
        judge_model=options.judge_model,
        simplifications=options.simplifications,
    )


def _serve_on_ray(name: str, options: ServeOptions, cluster: str) -> None:
    """Serve on the machines of a cluster.

    Raises:
        BadOption: An option is for one machine only.
        AgentGymError: As for `serve_on_ray`.
    """
    from agentgym_gym._cli.ray_servers import serve_on_ray  # noqa: PLC0415 - only this option needs it

    if options.host is not None:
        raise BadOption("--host and --ray exclude each other: each server listens on its machine's address")
    given = {
        "--max-envs": options.max_envs,
        "--seed": options.seed,
        "--data": options.data,
        "--judge": options.judge,
        "--judge-model": options.judge_model,
        "--simplifications": options.simplifications,
    }
    arguments = [part for flag, value in given.items() if value is not None for part in (flag, str(value))]
    arguments += [part for allowed in options.allow_host or () for part in ("--allow-host", allowed)]
    arguments += ["--twin"] if options.twin else []
    serve_on_ray(
        cluster,
        name,
        port=options.port,
        per_machine=options.per_machine or 1,
        arguments=arguments,
        print_line=typer.echo,
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
