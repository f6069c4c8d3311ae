"""What all commands share: where they print, and how an error ends them."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import typer
from rich import box
from rich.cells import cell_len
from rich.console import Console
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text
from typer.core import TyperCommand

from agentgym_gym.errors import AgentGymError

__all__ = [
    "ERROR",
    "Command",
    "clean",
    "err",
    "in_options",
    "out",
    "print_json",
    "print_pairs",
    "print_table",
    "report",
]

out = Console(highlight=False, markup=False, emoji=False)
err = Console(highlight=False, markup=False, emoji=False, stderr=True)

ERROR = 2
"""Exit status where a command could not do its work; 1 is for one that did and found something wrong."""

# Whole sequences, or else the letters behind the escape would be left on the screen.
_ESCAPES = re.compile(r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]|\x1b[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)?|\x1b.")
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
_UNPRINTABLE = re.compile(rf"{_CONTROLS.pattern}|[\ud800-\udfff]")  # and what UTF-8 cannot encode


def clean(text: str) -> str:
    """Return text that a server sent without what a terminal would obey instead of show."""
    return _CONTROLS.sub("", _ESCAPES.sub("", text))


def report(problem: object) -> None:
    """Print an error as one red line on standard error."""
    line = " ".join(clean(str(problem)).split())
    err.print(Text(f"error: {line}", style="red"), soft_wrap=True)


def print_json(value: Any) -> None:
    """Print a JSON value, with escapes for characters that a terminal obeys."""
    text = json.dumps(value, indent=2, ensure_ascii=False)
    typer.echo(_UNPRINTABLE.sub(lambda match: f"\\u{ord(match[0]):04x}", text))


def print_table(
    headings: Sequence[str], rows: Sequence[Sequence[str]], *, left: Collection[str] = (), title: str = ""
) -> None:
    """Print a table; where the terminal is too narrow for it, each row as a list of its cells.

    No cell is cut at any width.

    Args:
        headings: The headings of the columns.
        rows: Their cells, which may have several lines.
        left: Headings of the columns of words, which stand at the left; numbers stand at the right.
        title: What stands above it.
    """
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True, show_edge=False)
    for heading in headings:
        table.add_column(heading, justify="left" if heading in left else "right", no_wrap=True)
    for row in rows:
        table.add_row(*row)
    if title:
        out.print(title, soft_wrap=True)
    out.print()
    if Measurement.get(out, out.options.update(width=_ANY), table).maximum <= out.width:
        out.print(table)
        out.print()
        return
    longest = max(map(cell_len, headings))
    for row in rows:
        for heading, cell in zip(headings, row, strict=True):
            first, *more = cell.splitlines() or [""]
            out.print(f"{heading:<{longest}}  {first}", soft_wrap=True)
            for line in more:
                out.print(f"{'':<{longest}}  {line}", soft_wrap=True)
        out.print()


def print_pairs(rows: Mapping[str, str]) -> None:
    """Print names, each with what is said of it beside it; the terminal folds long lines."""
    longest = max(map(len, rows))
    for name, said in rows.items():
        out.print(f"{name:<{longest}}  {said}", soft_wrap=True)


_ANY = 100_000  # columns: wider than any table


class Command(TyperCommand):
    """A command whose errors are one line, in the words of the command line, and no traceback.

    An option that takes one value and is given twice is an error.
    """

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the arguments of the command."""
        _, _, order = self.make_parser(ctx).parse_args(args=list(args))
        for parameter, times in Counter(order).items():
            one_value = parameter.param_type_name == "option" and not getattr(parameter, "multiple", False)
            if times > 1 and one_value and not ctx.resilient_parsing:
                ctx.fail(f"{parameter.opts[0]} is given {times} times, and takes one value")
        try:
            return super().parse_args(ctx, args)
        except typer.BadParameter as error:
            error.message = _plain(error.message)
            raise

    def invoke(self, ctx: Any) -> Any:
        """Run the command."""
        try:
            return super().invoke(ctx)
        except AgentGymError as error:
            report(in_options(str(error), [option for each in self.params for option in each.opts]))
            raise typer.Exit(ERROR) from None


def in_options(text: str, options: Collection[str]) -> str:
    """Return the text of an error with the command's options in place of the library's arguments.

    Args:
        text: What the library says.
        options: The options of the command, such as ``--server``.
    """
    own = {each.removeprefix("--").replace("-", "_"): each for each in options if each.startswith("--")}
    own |= {argument: own[name] for argument, name in _OPTION_OF.items() if name in own}
    for pattern, said in _CALLS:
        text = pattern.sub(said, text)
    return _ARGUMENT.sub(lambda match: own.get(match[1], match[1]) + match[2], text)


_OPTION_OF = {"task_id": "task", "headers": "header"}
"""The option that gives an argument of the library, where their names differ."""

# An argument as the library's errors name it: "timeout=0 should be...". Not within a URL or a word.
_ARGUMENT = re.compile(r"(?<![\w/?&.'\"-])([a-z]\w*)(=(?=\S))")

_CALLS = (
    (re.compile(r"pass server=('http://HOST:PORT') to gymnasium\.make\([^)]*\)"), r"give --server \1"),
    (re.compile(r"the argument server="), "--server"),
    (re.compile(r" \(force=True\)"), ""),
    (re.compile(r", or None for no limit"), ", or 0 for no limit"),
)
"""Calls of the library that an error advises, and what does the same on the command line."""

_PLAIN = (
    (re.compile(r"^Value error, "), ""),
    (re.compile(r"^Input should be a valid integer\b.*", re.DOTALL), "it should be a whole number"),
    (re.compile(r"^Input should be a valid number\b.*", re.DOTALL), "it should be a number"),
    (re.compile(r"^Input should be "), "it should be "),
)
"""What the library under typer says of a value, and the same in plain words."""


def _plain(text: str) -> str:
    for pattern, said in _PLAIN:
        text = pattern.sub(said, text)
    return text
