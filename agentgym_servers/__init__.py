"""Local servers that implement AgentGym's protocol, with their worlds and oracle policies.

`serve` runs a server in the foreground; `agentgym_gym.local_servers` runs one in a background process. Both
need the extra ``servers``; importing this package does not. Each subpackage has a ``SERVER``, its
`agentgym_gym.local_servers.ServerKind`.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
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
    allow_hosts: Sequence[str] = (),
    twin: bool = False,
    judge: str | None = None,
    judge_model: str | None = None,
    simplifications: str | None = None,
) -> None:
    """Run a server until SIGINT or SIGTERM, then complete the requests in progress.

    Once the server accepts connections, it prints one line, ``serving TextCraft on http://127.0.0.1:PORT``.

    Args:
        name: As for `agentgym_gym.local_servers.server_kind`; or ``all`` for every server that can start
            here, each under the path of its name.
        host: The address to listen on: an IPv4 or IPv6 address or a host name of this machine.
        port: The port to listen on; 0 takes any free one.
        exit_with_parent: Whether to stop also when standard input ends. If the parent process holds the other
            end of a pipe, it leaves no orphan, even if it is killed before it can clean up.
        max_envs: Maximum number of concurrent environments; None for the server's own limit.
        seed: The seed of the generated world, for servers that generate one; None for the server's default.
        data: A folder with a user-supplied world, for servers that can load one.
        allow_hosts: Host names, without ports, that requests may have in ``Host`` besides loopback names.
            Without them, a server on a loopback address accepts loopback names only, and a server on another
            address accepts any.
        twin: Whether to reproduce AgentGym's server exactly, bugs included; only servers with a difference
            have this option.
        judge: Base URL of an OpenAI-compatible chat endpoint that judges answers by their meaning; only
            WebArena's server has this option. The variable ``OPENAI_API_KEY`` has its key.
        judge_model: The model that judges there.
        simplifications: Names of ScienceWorld's simplifications with commas between them, such as ``easy``;
            only SciWorld's server has this option.

    Raises:
        UnknownEnvironment: There is no server of that name.
        SetupError: A package that the server needs is not installed.
        BadOption: The port is in use, the host is not an address of this machine, or a number is out of
            range.
    """
    app: ASGIApp
    if name.lower() == ALL:
        own = {
            "seed": seed,
            "data": data,
            "judge": judge,
            "judge_model": judge_model,
            "simplifications": simplifications,
        }
        given = [option for option, value in own.items() if value is not None]
        if given:
            problem = "applies to one server only: name that server in place of 'all'"
            raise BadOption(given[0], problem=problem)
        app, title = _all_servers(max_envs, twin=twin), "all environments"
    else:
        kind = server_kind(name)
        worlds = {"seed": seed, "data": data, "twin": twin or None, "simplifications": simplifications}
        app = kind.app(max_envs=max_envs, judge=judge, judge_model=judge_model, **worlds)
        title = kind.title
    # Imported here because it imports uvicorn, which the extra installs.
    from agentgym_servers._frame.host_check import CheckHost, is_loopback  # noqa: PLC0415
    from agentgym_servers._frame.listening import listen, run_until_stopped  # noqa: PLC0415

    with listen(host, port) as listener:
        if allow_hosts or is_loopback(listener.getsockname()[0]):
            app = CheckHost(app, allow_hosts)
        run_until_stopped(app, listener, title=title, exit_with_parent=exit_with_parent)


def _all_servers(max_envs: int | None, *, twin: bool) -> ASGIApp:
    """Return an application with every server that can start here; print what the others need.

    Raises:
        SetupError: A package that all servers need is not installed.
    """
    kinds = {name: server_kind(path) for name, path in servers().items()}
    missing = {name: kind.missing() for name, kind in kinds.items()}
    if all(missing.values()):
        raise next(error for error in missing.values() if error is not None)
    for name, error in missing.items():
        if error is not None:
            sys.stderr.write(f"not served: {name}: {error}\n")
    from agentgym_servers._frame.mounted import Mounted  # noqa: PLC0415 - it imports what comes with the extra

    return Mounted(
        {
            name: partial(kind.app, max_envs=max_envs, twin=(twin and "twin" in kind.takes) or None)
            for name, kind in kinds.items()
            if missing[name] is None
        }
    )
