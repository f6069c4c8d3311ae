"""``agentgym parse``: show the action in a reply."""

from __future__ import annotations

import contextlib
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer
from rich.cells import cell_len
from rich.text import Text

from agentgym_gym._cli.console import clean, err, print_json
from agentgym_gym._cli.declared import command
from agentgym_gym._cli.options import Name  # noqa: TC001 - typer reads it at run time
from agentgym_gym._env_options import FORMAT_NAMES, FormatName, OnUnknown, Parser
from agentgym_gym._text import scrub
from agentgym_gym.actions import Thought, Verbatim
from agentgym_gym.errors import ActionError, BadOption, UnknownAction
from agentgym_gym.evaluate._resolve import resolve
from agentgym_gym.formats import ParseResult
from agentgym_gym.options import Option

if TYPE_CHECKING:
    from agentgym_gym._base_env import BaseTextEnv

__all__ = ["ParseOptions", "parse"]

_MARGIN = 30  # characters of context before and after the marked text
_MAX_MARKED = 80  # maximum characters of the marked text

_UNKNOWN = "outside the grammar; sent as written"
_THOUGHT = "a thought; no action is sent"


@dataclass(frozen=True, kw_only=True)
class ParseOptions:
    """The options of ``agentgym parse``."""

    name: Name
    file: Annotated[
        typer.FileBinaryRead | None,
        Option("UTF-8 file with the reply", positional=True, metavar="[FILE]", default="standard input"),
    ] = None
    action_format: Annotated[
        FormatName | None,
        Option(f"action format: {FORMAT_NAMES}", flag="--format", metavar="FORMAT", default="react"),
    ] = None
    parser: Parser = None
    on_unknown: OnUnknown = None
    as_json: Annotated[bool, Option("print a JSON object", flag="--json")] = False


@command(ParseOptions)
def parse(options: ParseOptions) -> None:
    """Parse a reply, and show its action and the action's position.

    It plays no episode and needs no server. Exits with 1 if the reply has no action.
    """
    chosen, file, as_json = resolve(options.name), options.file, options.as_json
    if chosen.environment is None:
        raise BadOption(
            f"cannot parse a reply for {chosen.id}: it has no grammar; name an AgentGym environment"
        )
    if file is None and sys.stdin.isatty():
        typer.echo("Paste the reply, then press Ctrl-D.", err=True)
    try:
        reply = (file or typer.get_binary_stream("stdin")).read().decode("utf-8")
    except UnicodeDecodeError as error:
        raise BadOption(f"cannot read the reply: {error}; write it as UTF-8") from None
    own = {
        "action_format": options.action_format,
        "parser": options.parser,
        "on_unknown": options.on_unknown,
    }
    with contextlib.closing(chosen.make({}, own, None)) as env:
        try:
            result = _read(cast("BaseTextEnv", env.unwrapped), reply)
        except ActionError as error:
            if as_json:
                print_json(_facts(reply, None, "") | {"error": error.kind, "message": str(error)})
            else:
                message = clean(scrub(f"error: {error.kind}: {error}"))
                err.print(Text(message, style="red"))
            raise typer.Exit(1) from None
    note = ""
    if isinstance(result.action, Thought):
        note = _THOUGHT
    elif isinstance(result.action, Verbatim) and not chosen.environment.grammar.knows(result.action.text):
        note = _UNKNOWN
    if as_json:
        print_json(_facts(reply, result, note))
    else:
        _print(reply, result, note)


def _read(env: BaseTextEnv, reply: str) -> ParseResult:
    """Parse a reply as ``step`` does.

    Raises:
        ActionError: The reply has no valid action.
    """
    try:
        env.read(reply)
    except ActionError as error:
        raise error.with_form(env.action_format.example(env.grammar)) from None
    try:
        return env.action_format.read(reply, env.grammar)
    except UnknownAction as error:  # the server gets the text unchanged
        return ParseResult(Verbatim(error.text or ""), error.mark, *error.span)


def _facts(reply: str, result: ParseResult | None, note: str) -> dict[str, Any]:
    """Return the JSON object; values that do not apply are null."""
    keys = ("action", "mark", "start", "end", "line", "column")
    facts: dict[str, Any] = {**dict.fromkeys(keys), "ignored": [], "error": None, "message": note or None}
    if result is None:
        return facts
    if not isinstance(result.action, Thought):
        facts["action"] = str(result.action)
    facts["mark"] = result.mark or None
    facts["ignored"] = list(result.ignored)
    if result.start < result.end:
        line, column = _position(reply, result.start)
        facts |= {"start": result.start, "end": result.end, "line": line, "column": column}
    return facts


def _print(reply: str, result: ParseResult, note: str) -> None:
    thinks = isinstance(result.action, Thought)
    rows = [] if thinks else [("action", str(result.action))]
    rows += [("note", note)] if note else []
    rows += [("mark", result.mark)] if result.mark else []
    if result.start < result.end:
        line, column = _position(reply, result.start)
        last_line, last_column = _position(reply, result.end - 1)
        end = "" if last_line == line else f", to line {last_line}, column {last_column}"
        rows.append(("place", f"line {line}, column {column}{end}"))
    rows += [("ignored", call) for call in result.ignored]
    for heading, text in rows:
        first, *more = clean(scrub(text)).splitlines() or [""]
        typer.echo(f"{heading:<7}  {first}")
        for further in more:
            typer.echo(f"{'':<7}  {further}")
    if result.start < result.end:
        typer.echo()
        for shown in _excerpt(reply, result.start, result.end):
            typer.echo(shown)


def _position(reply: str, index: int) -> tuple[int, int]:
    """Return the line and the column of a character, both from 1."""
    return reply.count("\n", 0, index) + 1, index - reply.rfind("\n", 0, index)


def _excerpt(reply: str, start: int, end: int) -> tuple[str, str]:
    """Return the line where the marked text starts, trimmed to its context, and a line that underlines it."""
    line_start = reply.rfind("\n", 0, start) + 1
    line_end = reply.find("\n", start)
    line_end = len(reply) if line_end < 0 else line_end
    end = min(end, line_end, start + _MAX_MARKED)
    first, last = max(line_start, start - _MARGIN), min(line_end, end + _MARGIN)
    before = ("…" if first > line_start else "") + _visible(reply[first:start])
    marked = _visible(reply[start:end])
    after = _visible(reply[end:last]) + ("…" if last < line_end else "")
    number = str(_position(reply, start)[0])
    return (
        f"{number} | {before}{marked}{after}".rstrip(),
        f"{'':<{len(number)}} | {' ' * cell_len(before)}{'^' * max(1, cell_len(marked))}",
    )


def _visible(text: str) -> str:
    """Return text that is safe to print, with tabs replaced by single spaces."""
    return clean(scrub(text)).replace("\t", " ")
