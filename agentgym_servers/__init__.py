"""Local servers that speak AgentGym's protocol, their worlds, and oracles that play them.

`serve` runs one in the foreground; `agentgym_gym.local_servers` runs one in a process in the background. They
need the extra ``servers``; importing this package does not. Each subpackage has a ``SERVER``, its
`agentgym_gym.local_servers.ServerKind`.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from agentgym_gym.errors import BadOption
from agentgym_gym.local_servers import ALL, server_kind, servers

if TYPE_CHECKING:
    from starlette.types import ASGIApp

__all__ = ["serve"]


def serve(
    name: str,
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    exit_with_parent: bool = False,
    max_envs: int | None = None,
    seed: int | None = None,
    data: Path | None = None,
) -> None:
    """Run a server until SIGINT or SIGTERM. Requests in progress are then completed.

    Once connections are accepted, prints one line, ``serving TextCraft on http://127.0.0.1:PORT``.

    Args:
        name: As for `agentgym_gym.local_servers.server_kind`; or ``all`` for all that can be started, each
            below the path of its name.
        host: The address to listen on: one that names this machine, IPv4 or IPv6.
        port: The port to listen on; 0 takes any free one.
        exit_with_parent: Whether to stop when standard input ends, too. A parent that holds the other end of
            a pipe then leaves no orphan, even if it is killed with no time to clean up.
        max_envs: How many environments the server holds at a time; None for the server's own limit.
        seed: Of the world that it makes, where it makes one; None for the server's own.
        data: A folder with a world of the user's, where it can load one.

    Raises:
        UnknownEnvironment: There is no server of that name.
        SetupError: Something the server needs is not installed.
        BadOption: The port is in use, the host is not this machine's, or a number is out of range.
    """
    app: ASGIApp
    if name.lower() == ALL:
        if seed is not None or data is not None:
            raise BadOption("seed and data are of one server: serve that by its name")
        app, title = _all_servers(max_envs), "all environments"
    else:
        kind = server_kind(name)
        app, title = kind.app(max_envs=max_envs, seed=seed, data=data), kind.title
    # Only now, because it imports uvicorn, which comes with the extra.
    from agentgym_servers._frame.listening import listen, run_until_told  # noqa: PLC0415

    with listen(host, port) as listener:
        run_until_told(app, listener, title=title, exit_with_parent=exit_with_parent)


def _all_servers(max_envs: int | None) -> ASGIApp:
    """Return an application with every server that can be started here.

    Raises:
        SetupError: What they all need is not installed.
    """
    kinds = {name: server_kind(path) for name, path in servers().items()}
    missing = {name: kind.missing() for name, kind in kinds.items()}
    if all(missing.values()):
        raise next(error for error in missing.values() if error is not None)
    from agentgym_servers._frame.mounted import Mounted  # noqa: PLC0415 - it imports what comes with the extra

    return Mounted(
        {name: partial(kind.app, max_envs=max_envs) for name, kind in kinds.items() if missing[name] is None}
    )
