"""Options shared by several commands, and the parsing of their values."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from agentgym_gym._env_options import (  # noqa: TC001 - read at run time
    ActionFormat,
    MaxTurns,
    OnUnknown,
    Parser,
    Timeout,
)
from agentgym_gym._headers import HiddenHeaders, parse_headers
from agentgym_gym.errors import BadOption
from agentgym_gym.evaluate._resolve import resolve
from agentgym_gym.options import Option

__all__ = [
    "TASKS_HELP",
    "AgentGymOptions",
    "EnvKwargs",
    "ExtraEnvs",
    "Force",
    "Header",
    "Json",
    "Name",
    "RunFolders",
    "Split",
    "TrainingSplit",
    "ValidationSize",
    "headers_of",
    "register_envs",
]

TASKS_HELP = "tasks, such as 0:50, 1,2,5, all, or an item file"
"""The help of options for tasks; the commands explain the syntax in their descriptions."""

Name = Annotated[
    str,
    Option(
        "environment: id, name, or MODULE:ID of another package",
        positional=True,
        metavar="ID",
        completes="environment",
    ),
]

EnvKwargs = Annotated[
    str,
    Option("more arguments of the environment, as a JSON object", metavar="JSON"),
]

ExtraEnvs = Annotated[
    list[str] | None,
    Option(
        "environment of another package, to add to the catalogue; repeatable",
        flag="--env",
        metavar="MODULE:ID",
    ),
]

Header = Annotated[
    list[str] | None,
    Option(
        "HTTP header for the server, such as a token; repeatable", argument="headers", metavar="'NAME: VALUE'"
    ),
]


Split = Annotated[
    str | None,
    Option("split of the tasks", default="all; any for a file", completes="split"),
]

TrainingSplit = Annotated[
    str | None,
    Option(
        "split of the training tasks; all for every task", default="train; any for a file", completes="split"
    ),
]

ValidationSize = Annotated[str, Option("validation size: number of tasks, or share (0.1 or 10%)")]


@dataclass(frozen=True, kw_only=True)
class AgentGymOptions:
    """The options of training rows that apply only to AgentGym's environments."""

    action_format: ActionFormat = None
    parser: Parser = None
    max_turns: MaxTurns = None
    split: TrainingSplit = None
    on_unknown: OnUnknown = None
    timeout: Timeout = None


RunFolders = Annotated[
    list[Path],
    Option("folders of one or several runs", positional=True, metavar="RUN", completes="run"),
]

Force = Annotated[bool, Option("replace existing files")]

Json = Annotated[bool, Option("print JSON instead of a table", flag="--json")]


def headers_of(values: list[str] | None) -> HiddenHeaders:
    """Parse the headers of ``--header``; error messages never contain their values.

    Raises:
        BadOption: A header is not ``NAME: VALUE``, cannot be sent, or is given twice.
    """
    headers: dict[str, str] = {}
    for header in values or ():
        name, colon, value = header.partition(":")
        if not colon:
            raise BadOption("headers", expected="given as 'NAME: VALUE'")
        if name.strip() in headers:
            raise BadOption("headers", problem="gives one name twice: give each header once")
        headers[name.strip()] = value.strip()
    return parse_headers(headers, "headers")


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
