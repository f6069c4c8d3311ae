"""Find the server of each environment."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from agentgym_gym import local_servers
from agentgym_gym._addresses import configured
from agentgym_gym._cli.console import clean, out
from agentgym_gym._headers import configured_headers
from agentgym_gym._server_kinds import default_world, missing_part
from agentgym_gym._text import redact
from agentgym_gym.errors import BadOption
from agentgym_gym.evaluate._world import world_label

if TYPE_CHECKING:
    from agentgym_gym.catalogue import Environment

__all__ = ["ServerSource", "print_advice", "source_of"]


@dataclass(frozen=True)
class ServerSource:
    """The source of an environment's server.

    Attributes:
        kind: ``variable``, ``local`` (started when needed), ``none``, or ``invalid`` if a variable does not
            contain valid URLs or headers.
        urls: The URLs in the variable.
        note: The source in words.
        label: The source in a few words, for a table.
        advice: The remedy, in a sentence below the table; empty if none is needed.
    """

    kind: Literal["variable", "local", "none", "invalid"]
    urls: tuple[str, ...]
    note: str
    label: str
    advice: str = ""


def source_of(environment: Environment) -> ServerSource:
    """Return the source of an environment's server if no argument specifies one."""
    try:
        urls = configured(environment)
        configured_headers(environment)
    except BadOption as error:
        return ServerSource("invalid", (), str(error), "invalid setting", str(error))
    if urls:
        note = ", ".join(map(redact, urls))
        return ServerSource("variable", urls, note, note)
    note = f"none; set {environment.variable}"
    if environment.local_server is None:
        return ServerSource("none", (), note, "none", _SET_VARIABLE)
    missing = local_servers.available(environment.local_server)
    if missing is not None:
        part, extra = missing_part(environment.local_server)
        how = f"pip install '.[{extra}]' in a checkout of agentgym-gym" if extra else missing
        return ServerSource("none", (), f"{note}. {missing}", f"needs {part}", f"{how}; or {_SET_VARIABLE}")
    world = default_world(environment.local_server)
    label = "local" if world is None else world_label(str(world))
    return ServerSource("local", (), f"{label}, started when needed", label)


_SET_VARIABLE = "set AGENTGYM_<NAME>_URL to the URL of a server"


def print_advice(sources: Iterable[ServerSource]) -> None:
    """Print the remedies for missing servers below a table, each once."""
    sources = list(sources)
    for line in dict.fromkeys(f"{source.label}: {source.advice}" for source in sources if source.advice):
        out.print(f"{clean(line).rstrip('.')}.")
    if any(source.kind == "local" for source in sources):
        out.print("Local servers are started when needed.")
