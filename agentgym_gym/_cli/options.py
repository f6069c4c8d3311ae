"""Options shared by several commands, and the parsing of their values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

from agentgym_gym._cli.completion import complete_split
from agentgym_gym._headers import HiddenHeaders, parse_headers
from agentgym_gym._option import (
    FORMAT_NAMES,
    ActionFormat,
    EnvTimeout,
    Isolate,
    MaxTurns,
    OnUnknown,
    Parser,
    Server,
    SuccessAt,
    Timeout,
)
from agentgym_gym.errors import BadOption
from agentgym_gym.evaluate._env_setup import text_of

__all__ = [
    "FORMAT_NAMES",
    "ActionFormat",
    "AgentGymOptions",
    "EnvTimeout",
    "Force",
    "Header",
    "Isolate",
    "Json",
    "MaxTurns",
    "OnUnknown",
    "Parser",
    "Server",
    "Split",
    "SuccessAt",
    "Timeout",
    "TrainingSplit",
    "ValidationSize",
    "headers_of",
    "text_of",
]

Header = Annotated[
    list[str] | None,
    typer.Option(
        "--header",
        metavar="'NAME: VALUE'",
        help="HTTP header for the server, such as a token; repeatable",
    ),
]


Split = Annotated[
    str | None,
    typer.Option(
        help="split of the tasks", show_default="all; any for a file", autocompletion=complete_split
    ),
]

TrainingSplit = Annotated[
    str | None,
    typer.Option(
        help="split of the training tasks; all for every task",
        show_default="train; any for a file",
        autocompletion=complete_split,
    ),
]

ValidationSize = Annotated[str, typer.Option(help="validation size: number of tasks, or share (0.1 or 10%)")]


@dataclass(frozen=True, kw_only=True)
class AgentGymOptions:
    """The options of training rows that apply only to AgentGym's environments."""

    action_format: ActionFormat = None
    parser: Parser = None
    max_turns: MaxTurns = None
    split: TrainingSplit = None
    on_unknown: OnUnknown = None
    timeout: Timeout = None


Force = Annotated[bool, typer.Option("--force", help="replace existing files")]

Json = Annotated[bool, typer.Option("--json", help="print JSON instead of a table")]


def headers_of(values: list[str] | None) -> HiddenHeaders:
    """Parse the headers of ``--header``; error messages never contain their values.

    Raises:
        BadOption: A header is not ``NAME: VALUE``, cannot be sent, or is given twice.
    """
    headers: dict[str, str] = {}
    for header in values or ():
        name, colon, value = header.partition(":")
        if not colon:
            raise BadOption("--header should be given as 'NAME: VALUE'")
        if name.strip() in headers:
            raise BadOption("--header gives one name twice: give each header once")
        headers[name.strip()] = value.strip()
    return parse_headers(headers, "--header")
