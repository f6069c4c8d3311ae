"""Server addresses: which servers an environment uses.

In order of precedence: the ``server`` argument, the environment variable ``AGENTGYM_NAME_URL``, and a local
server that this process starts and shares. The argument and the variable may list several servers.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from agentgym_gym._text import redact
from agentgym_gym.errors import ArgumentName, BadOption, NoServer

if TYPE_CHECKING:
    from agentgym_gym.catalogue import Environment

__all__ = ["addresses", "configured", "parse_urls"]


def addresses(environment: Environment, server: str | Sequence[str] | None) -> tuple[str, ...]:
    """Return the base URLs of the servers to use; start a local server if none is configured.

    Args:
        environment: The environment.
        server: The ``server`` argument, if any.

    Raises:
        BadOption: A URL is invalid.
        NoServer: No server is configured and none can be started; the message explains how to get one.
    """
    urls = configured(environment, server)
    if urls:
        return urls
    way = ""
    if environment.local_server is None:
        reason = "this project has no local server for it"
    else:
        from agentgym_gym import local_servers  # noqa: PLC0415 - not needed where a server is configured

        missing = local_servers.available(environment.local_server)
        if missing is None:
            return (local_servers.local_server_url(environment.local_server),)
        reason = f"none can be started here: {missing}"
        way = (
            "; or pip install '.[servers]' in a checkout: a server then starts on demand, or by "
            f"`agentgym serve {environment.name.lower()}`"
        )
    raise NoServer(
        f"no server for {environment.name}, and {reason}. Give ",
        ArgumentName("server"),
        f"='http://HOST:PORT'; or set the variable {environment.variable}{way}.",
    )


def configured(environment: Environment, server: str | Sequence[str] | None = None) -> tuple[str, ...]:
    """Return the servers of the argument, or otherwise of the variable; empty if neither is set.

    Raises:
        BadOption: A URL is invalid.
    """
    if server is not None:
        return parse_urls(server, "server")
    value = os.environ.get(environment.variable, "").strip()
    return parse_urls(value, environment.variable) if value else ()


def parse_urls(value: str | Sequence[str], name: str) -> tuple[str, ...]:
    """Return base URLs from a comma-separated string or from a sequence.

    Args:
        value: The URLs, as passed by the user.
        name: The argument or variable they come from, for the error message.

    Raises:
        BadOption: There is none, or one is not an http or https URL with a host.
    """
    if not isinstance(value, (str, Sequence)):
        raise BadOption(name, value, "a URL or a sequence of URLs")
    urls = tuple(_base_url(part, name) for part in (value.split(",") if isinstance(value, str) else value))
    if not urls:
        raise BadOption(name, problem="names no server; give a URL such as 'http://127.0.0.1:36001'")
    return tuple(dict.fromkeys(urls))


def _base_url(value: str, name: str) -> str:
    try:
        parts = urlsplit(value.strip())
        valid = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except (ValueError, AttributeError, TypeError):
        valid = False
    if not valid or parts.query or parts.fragment:
        raise BadOption(
            name,
            redact(value) if isinstance(value, str) else value,
            problem="is not the URL of a server; it should look like 'http://127.0.0.1:36001'",
        )
    return value.strip().rstrip("/")
