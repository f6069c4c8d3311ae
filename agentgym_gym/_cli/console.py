"""Output and error handling for all commands."""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from contextvars import ContextVar
from typing import Any

import typer
from rich.cells import cell_len
from rich.console import Console
from rich.text import Text
from typer.core import TyperCommand

from agentgym_gym._cli.fitted_tables import body_of, columns_of, fit, fits, heading_of
from agentgym_gym.errors import AgentGymError

__all__ = [
    "ARGUMENTS",
    "ERROR",
    "HELP_ALL",
    "Command",
    "clean",
    "err",
    "json_text",
    "out",
    "print_json",
    "print_pairs",
    "print_table",
    "report",
    "show_all",
]

out = Console(highlight=False, markup=False, emoji=False, soft_wrap=True)
err = Console(highlight=False, markup=False, emoji=False, soft_wrap=True, stderr=True)

ERROR = 2
"""Exit status of a command that failed; 1 is for a command that succeeded and found a problem."""

ARGUMENTS: ContextVar[Sequence[str]] = ContextVar("ARGUMENTS", default=())
"""The arguments of the current command, as the user gave them."""

# Match whole sequences; otherwise the letters after the escape would remain visible.
_ESCAPES = re.compile(r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]|\x1b[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)?|\x1b.")
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
_UNPRINTABLE = re.compile(rf"{_CONTROLS.pattern}|[\ud800-\udfff]")  # or not encodable as UTF-8


def clean(text: str) -> str:
    """Remove terminal control sequences from text that a server sent."""
    return _CONTROLS.sub("", _ESCAPES.sub("", text))


def report(problem: object) -> None:
    """Print an error as one red line on standard error."""
    line = " ".join(clean(str(problem)).split())
    err.print(Text(f"error: {line}", style="red"))


def print_json(value: Any) -> None:
    """Print a JSON value; control characters are escaped."""
    typer.echo(json_text(value))


def json_text(value: Any) -> str:
    """Return a value as JSON in which control characters are escaped."""
    text = json.dumps(value, indent=2, ensure_ascii=False)
    return _UNPRINTABLE.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def print_table(
    headings: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    left: Collection[str] = (),
    below: Collection[str] = (),
    title: str = "",
) -> None:
    """Print a table that fits into the terminal; in a file or a pipe it has its natural width.

    A terminal of less than 60 columns gets each row as a list of its cells if the table does not fit.

    Args:
        headings: The headings of the columns.
        rows: The cells of each row, which may have several lines. Cells are short: sentences go below.
        left: Headings of the left-aligned columns, whose cells may be cut; the others are right-aligned.
        below: Headings of columns that may move below the previous one.
        title: The title above the table.
    """
    if title:
        out.print(title)
    out.print()
    columns = columns_of(headings, rows, left)
    width = out.width if out.is_terminal or os.environ.get("COLUMNS", "").isdigit() else _UNLIMITED
    if width < _NARROW and not fits(columns, width):
        _print_lists(headings, rows)
        return
    for table in fit(columns, width, below):
        out.print(Text(heading_of(table), style="bold"))
        out.print(Text(body_of(table)))
        out.print()


def _print_lists(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    longest = max(map(cell_len, headings))
    for row in rows:
        for heading, cell in zip(headings, row, strict=True):
            first, *more = cell.splitlines() or [""]
            out.print(f"{heading:<{longest}}  {first}")
            for line in more:
                out.print(f"{'':<{longest}}  {line}")
        out.print()


def print_pairs(rows: Mapping[str, str]) -> None:
    """Print names next to their descriptions; the terminal wraps long lines."""
    longest = max(map(len, rows))
    for name, description in rows.items():
        out.print(f"{name:<{longest}}  {description}")


_NARROW = 60  # columns: a narrower terminal has lists instead of tables
_UNLIMITED = 100_000  # columns: wider than any table


HELP_ALL = "help_all"
"""The name of the option that shows the whole help of a command with a short one."""


def show_all(ctx: typer.Context, requested: bool) -> None:
    """Print the whole help of a command, and end it, if that is requested."""
    if requested:
        ctx.meta[HELP_ALL] = True
        typer.echo(ctx.get_help())
        raise typer.Exit


class Command(TyperCommand):
    """A command that prints an error as one line that names its options, without a traceback.

    Repeating an option that accepts only one value is an error.
    """

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        # Set by `declared.command`.
        self.epilog = self.epilog or getattr(self.callback, "epilog", None)
        self._usual: Collection[str] = getattr(self.callback, "usual", ())
        self._arguments: Mapping[str, str] = getattr(self.callback, "arguments", {})

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the arguments of the command, and store them in `ARGUMENTS`."""
        ARGUMENTS.set(tuple(args))
        _, _, order = self.make_parser(ctx).parse_args(args=list(args))
        for parameter, times in Counter(order).items():
            one_value = parameter.param_type_name == "option" and not getattr(parameter, "multiple", False)
            if times > 1 and one_value and not ctx.resilient_parsing:
                ctx.fail(f"{parameter.opts[0]} is given {times} times; give it once")
        try:
            return super().parse_args(ctx, args)
        except typer.BadParameter as error:
            error.message = _plain(error)
            raise

    def grouped(self, ctx: Any) -> dict[str, list[Any]]:
        """Return the arguments and options by the title of their group, in the order of the help."""
        groups: dict[str, list[Any]] = {}
        for each in self.get_params(ctx):
            title = "Arguments" if each.param_type_name == "argument" else _title(each)
            groups.setdefault(title, []).append(each)
        if len(groups.keys() - {"Arguments"}) > 1 and "Options" in groups:
            groups["Other options"] = groups.pop("Options")
        return groups

    def format_help_text(self, ctx: Any, formatter: Any) -> None:
        """Write the description; of a command with a short help, its first paragraph, unless all is shown."""
        whole = self.help
        if self._usual and not ctx.meta.get(HELP_ALL) and whole:
            self.help = whole.partition("\n\n")[0]
        try:
            super().format_help_text(ctx, formatter)
        finally:
            self.help = whole

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the arguments and options in their groups; typer groups them only in its coloured help.

        A short help has the usual options only, in one group.
        """
        groups = self.grouped(ctx)
        if self._usual and not ctx.meta.get(HELP_ALL):
            options = [each for title, those in groups.items() if title != "Arguments" for each in those]
            usual = [each for each in options if each.name in {*self._usual, "help", HELP_ALL}]
            groups = {"Arguments": groups.get("Arguments", []), "Options": usual}
        for title, parameters in groups.items():
            records = [each.get_help_record(ctx) for each in parameters]
            if any(records):
                with formatter.section(title):
                    formatter.write_dl([record for record in records if record is not None])

    def invoke(self, ctx: Any) -> Any:
        """Run the command."""
        try:
            return super().invoke(ctx)
        except AgentGymError as error:
            flags = [flag for each in self.params for flag in each.opts if flag.startswith("--")]
            names = {flag.removeprefix("--").replace("-", "_"): flag for flag in flags}
            report(error.renamed({**names, **self._arguments}))
            raise typer.Exit(ERROR) from None


def _title(option: Any) -> str:
    return getattr(option, "rich_help_panel", None) or "Options"


def _plain(error: typer.BadParameter) -> str:
    """Return the message of a value of the wrong type, without the words of the library that typer uses."""
    details = getattr(error.__cause__, "errors", None)
    if not callable(details):
        return error.message
    kind = details()[0]["type"]
    if kind in _TYPES:
        return _TYPES[kind]
    if kind == "value_error":
        return error.message.removeprefix("Value error, ")
    return error.message.replace("Input should be ", "it should be ", 1)


_TYPES = dict.fromkeys(("int_parsing", "int_from_float", "int_type"), "it should be a whole number") | (
    dict.fromkeys(("float_parsing", "float_type"), "it should be a number")
)
"""Messages by the kind of pydantic's error."""
