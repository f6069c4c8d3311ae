"""Options shared by several commands, and the parsing of their values."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from agentgym_gym._cli.completion import complete_split
from agentgym_gym._headers import HiddenHeaders, parse_headers
from agentgym_gym._http.limits import DEFAULT_TIMEOUT
from agentgym_gym._options import FormatName
from agentgym_gym.errors import BadOption

__all__ = [
    "FORMAT_NAMES",
    "ActionFormat",
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

FORMAT_NAMES = "react, function_calling, code_as_action, tags, adapt, bare, tool_calls"
"""The names of `FormatName`, for help lines."""

ActionFormat = Annotated[
    FormatName | None,
    typer.Option(metavar="FORMAT", help=f"action format: {FORMAT_NAMES}", show_default="react"),
]

Parser = Annotated[
    Literal["default", "agentgym"] | None,
    typer.Option(help="reply parser; agentgym parses as AgentGym's own client does"),
]

OnUnknown = Annotated[
    Literal["forward", "refuse"] | None,
    typer.Option(help="handling of actions outside the environment's grammar"),
]

MaxTurns = Annotated[
    int | None,
    typer.Option(min=0, help="turn limit; 0 for none", show_default="the environment's, else 100"),
]

Timeout = Annotated[
    float | None,
    typer.Option(help="timeout of each server request, in seconds", show_default=f"{DEFAULT_TIMEOUT:g}"),
]

Isolate = Annotated[
    Literal["loop", "thread", "process"] | None,
    typer.Option(help="where each environment runs", show_default="loop or thread"),
]

SuccessAt = Annotated[
    float | None,
    typer.Option(metavar="RETURN", help="return that counts as success if none is reported"),
]

EnvTimeout = Annotated[
    float | None,
    typer.Option(
        help="timeout of each call to another library's environment, in seconds", show_default="900"
    ),
]

Header = Annotated[
    list[str] | None,
    typer.Option(
        "--header",
        metavar="'NAME: VALUE'",
        help="HTTP header for the server, such as a token; repeatable",
    ),
]


Server = Annotated[
    str | None,
    typer.Option(
        help="server URL, or several separated by commas",
        show_default="its variable, else a local server",
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

Force = Annotated[bool, typer.Option("--force", help="replace existing files")]

Json = Annotated[bool, typer.Option("--json", help="print JSON instead of a table")]


def text_of(file: Path) -> str:
    """Return the text of a file that an option names, without the final newline.

    Raises:
        BadOption: The file cannot be read, or is empty.
    """
    try:
        text = file.read_text("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise BadOption(f"cannot read {file}: {error}") from error
    if not text.strip():
        raise BadOption(f"{file} is empty")
    return text.removesuffix("\n")  # the newline at the end of a text file is not content


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
