"""Options shared by several commands, and the parsing of their values."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from agentgym_gym._headers import HiddenHeaders, parse_headers
from agentgym_gym._http.limits import DEFAULT_TIMEOUT
from agentgym_gym._options import FormatName
from agentgym_gym.errors import BadOption

__all__ = [
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
    "headers_of",
    "text_of",
]

ActionFormat = Annotated[
    FormatName | None,
    typer.Option(
        metavar="FORMAT",
        help="How a reply wraps its action: react, function_calling, code_as_action,"
        " tags, adapt, bare or tool_calls; by default react.",
    ),
]

Parser = Annotated[
    Literal["default", "agentgym"] | None,
    typer.Option(help="Who reads a reply: agentgym reads as AgentGym's own client does."),
]

OnUnknown = Annotated[
    Literal["forward", "refuse"] | None,
    typer.Option(help="What is done with an action the environment does not know."),
]

MaxTurns = Annotated[
    int | None,
    typer.Option(
        min=0, help="Turn limit, 0 for none; by default AgentGym's own, or 100 where another's has none."
    ),
]

Timeout = Annotated[
    float | None,
    typer.Option(help=f"Seconds allowed for each reply of the server; by default {DEFAULT_TIMEOUT:g}."),
]

Isolate = Annotated[
    Literal["loop", "thread", "process"] | None,
    typer.Option(help="Where each environment runs; by default loop or thread."),
]

SuccessAt = Annotated[
    float | None,
    typer.Option(metavar="RETURN", help="Return that solves a task where no success is stated."),
]

EnvTimeout = Annotated[
    float | None,
    typer.Option(help="Deadline of each call to another library's environment; default 900."),
]

Header = Annotated[
    list[str] | None,
    typer.Option(
        "--header",
        metavar="'NAME: VALUE'",
        help="An HTTP header for the server, such as a token; repeat it for several. Others on this machine "
        "may see it in the list of processes: the variable AGENTGYM_<NAME>_HEADERS, a JSON object, hides it.",
    ),
]


Server = Annotated[
    str | None,
    typer.Option(
        help="URL of the server, or several with commas; by default the variable, else a local one."
    ),
]

Split = Annotated[
    str | None, typer.Option(help="Which split the tasks are of; by default the first, in a file any.")
]


Force = Annotated[bool, typer.Option("--force", help="Replace the files that are there.")]

Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]


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


def headers_of(given: list[str] | None) -> HiddenHeaders:
    """Parse the headers of ``--header``; error messages never contain their values.

    Raises:
        BadOption: A header is not ``NAME: VALUE``, cannot be sent, or is given twice.
    """
    headers: dict[str, str] = {}
    for each in given or ():
        name, colon, value = each.partition(":")
        if not colon:
            raise BadOption("--header should be given as 'NAME: VALUE'")
        if name.strip() in headers:
            raise BadOption("--header gives one name twice")
        headers[name.strip()] = value.strip()
    return parse_headers(headers, "--header")
