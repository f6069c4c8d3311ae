"""The contents of cells: how values are stored, displayed, calculated, sorted and matched."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias

from agentgym_servers._frame.tool_tasks import CallRefused

__all__ = [
    "COLUMNS",
    "EMPTY",
    "OPERATORS",
    "ROWS",
    "SheetCell",
    "SheetError",
    "Value",
    "calculate",
    "format_value",
    "indices_of",
    "matcher",
    "name_of",
    "order_of",
    "place_of",
    "value_of",
]

Value: TypeAlias = "str | float"

ROWS = 100
"""The maximum number of rows of a sheet."""

COLUMNS = 26
"""The maximum number of columns of a sheet, so that each has a name of one letter."""

_CHARS = 200
_LARGEST = 1e15  # below it, a float represents every integer exactly
_PLACE = re.compile(r"([A-Z])([1-9][0-9]{0,4})", re.ASCII)
_SPECIAL = re.compile(r"[][(){}?*+^$|\\]")


class SheetError(CallRefused):
    """A call that the spreadsheet refuses; the message is the ``repr`` of an exception.

    Args:
        kind: The name of the exception.
        text: The message.
    """

    def __init__(self, kind: str, text: str) -> None:
        super().__init__(f"{kind}({text!r})")


class SheetCell(NamedTuple):
    """A cell.

    Attributes:
        value: Text or a number; the empty string in an empty cell.
        note: The note of the cell.
    """

    value: Value = ""
    note: str = ""


EMPTY = SheetCell()
"""An empty cell."""


def value_of(entry: Any) -> Value:
    """Return the value to store for an input; text that parses as a number becomes one.

    Raises:
        SheetError: The input is neither text nor a number, or it is too long or too large.
    """
    if isinstance(entry, str):
        if len(entry) > _CHARS:
            raise SheetError("ValueError", f"a cell holds at most {_CHARS} characters")
        try:
            number = float(entry)
        except ValueError:
            return entry
        return number if math.isfinite(number) and abs(number) < _LARGEST else entry
    if not isinstance(entry, (bool, int, float)):
        raise SheetError("TypeError", f"a cell holds text or a number, not a {type(entry).__name__}")
    if not abs(entry) < _LARGEST:
        raise SheetError("ValueError", f"a number must be below {_LARGEST:g}")
    return float(entry)


def format_value(value: Value) -> str:
    """Return a value as the sheet displays it: integers without decimals, others with two decimal places."""
    if isinstance(value, str):
        return value
    text = f"{value:.2f}".removesuffix(".00")
    return "0" if text == "-0" else text


def order_of(value: Value) -> tuple[bool, float, str]:
    """Return the sort key of a value: numbers come first, then text, ignoring case."""
    if isinstance(value, str):
        return True, 0.0, value.lower()
    return False, value, ""


def place_of(name: Any) -> tuple[int, int]:
    """Return the row and the column of a cell, from 0, by a name such as B2.

    Raises:
        SheetError: This is not the name of a cell, or it lies outside the sheet.
    """
    match = _PLACE.fullmatch(name) if isinstance(name, str) else None
    if match is None:
        raise SheetError("IncorrectCellLabel", "positions are pattern as A1, B2 and so on, from A to Z")
    return indices_of(int(match[2]), ord(match[1]) - ord("A") + 1)


def indices_of(row: int, column: int) -> tuple[int, int]:
    """Convert a row and a column counted from 1 into indices from 0.

    Raises:
        SheetError: The sheet has no such row or column.
    """
    if not (1 <= row <= ROWS and 1 <= column <= COLUMNS):
        raise SheetError("APIError", f"the range exceeds the grid of {ROWS} rows and {COLUMNS} columns")
    return row - 1, column - 1


def name_of(row: int, column: int) -> str:
    """Return the name of a cell by its row and column indices, from 0."""
    return f"{chr(ord('A') + column)}{row + 1}"


def _minus(numbers: Sequence[float]) -> float | None:
    return numbers[0] - numbers[1] if len(numbers) == 2 else None  # noqa: PLR2004 - it takes two


OPERATORS: dict[str, Callable[[Sequence[float]], float | None]] = {
    "SUM": math.fsum,
    "AVERAGE": lambda numbers: math.fsum(numbers) / len(numbers) if numbers else None,
    "COUNT": lambda numbers: float(len(numbers)),
    "MAX": lambda numbers: max(numbers, default=0.0),
    "MIN": lambda numbers: min(numbers, default=0.0),
    "MINUS": _minus,
    "PRODUCT": lambda numbers: math.prod(numbers) if numbers else 0.0,
}
"""The operations on the numbers of some cells; each returns None if it is undefined."""


def calculate(operator: Any, values: Sequence[Value]) -> Value:
    """Return the result of an operation; text is ignored, as in Google's spreadsheets.

    Raises:
        SheetError: There is no such operator.
    """
    operation = OPERATORS.get(operator) if isinstance(operator, str) else None
    if operation is None:
        raise SheetError("ValueError", f"the operator should be one of {list(OPERATORS)}")
    result = operation([each for each in values if isinstance(each, float)])
    if result is None:
        return "#N/A" if operator == "MINUS" else "#DIV/0!"
    return result if abs(result) < _LARGEST else "#NUM!"


def matcher(pattern: str) -> Callable[[str], bool]:
    """Return a function that matches text against a pattern; each text takes linear time.

    A pattern is one or more alternatives separated by ``|``, optionally in parentheses, with ``^`` and ``$``
    around each or around all. In an alternative, ``.*`` is any text, ``.`` is one character, and a backslash
    escapes a character.

    Raises:
        SheetError: The pattern has other special characters of regular expressions, or is too long.
    """
    if len(pattern) > _CHARS:
        raise SheetError("error", f"a pattern has at most {_CHARS} characters")
    all_begin, all_end = pattern.startswith("^("), pattern.endswith(")$")
    inner = pattern[all_begin:]
    inner = inner[: len(inner) - all_end]
    if inner.startswith("(") and inner.endswith(")"):
        inner = inner[1:-1]
    alternatives = [_Alternative(each, begin=all_begin, end=all_end) for each in inner.split("|")]
    return lambda text: any(each.matches(text) for each in alternatives)


class _Alternative:
    """One alternative of a pattern: pieces of text with anything between them."""

    def __init__(self, pattern: str, *, begin: bool, end: bool) -> None:
        self._begin = begin or pattern.startswith("^")
        self._end = end or (pattern.endswith("$") and not pattern.endswith("\\$"))
        inner = pattern.removeprefix("^")
        inner = inner.removesuffix("$") if self._end else inner
        self._pieces = [_piece(each) for each in inner.split(".*")]

    def matches(self, text: str) -> bool:
        """Return whether the text matches; each piece is searched once, from the end of the previous one."""
        position = 0
        *firsts, (last, length) = self._pieces
        for number, (piece, _) in enumerate(firsts):
            match = (
                piece.match(text, position) if self._begin and number == 0 else piece.search(text, position)
            )
            if match is None:
                return False
            position = match.end()
        if self._end:
            start = len(text) - length
            at_begin = start == 0 or not self._begin or bool(firsts)
            return start >= position and at_begin and last.match(text, start) is not None
        search = last.match if self._begin and not firsts else last.search
        return search(text, position) is not None


def _piece(pattern: str) -> tuple[re.Pattern[str], int]:
    """Return a regular expression without repetition for a piece, and the number of characters it matches.

    Raises:
        SheetError: The piece has unsupported special characters of regular expressions.
    """
    parts = []
    rest = iter(pattern)
    for sign in rest:
        if sign == "\\":
            escaped = next(rest, "")
            if not escaped or escaped.isalnum():
                raise SheetError("error", "this server reads no classes in patterns")
            parts.append(re.escape(escaped))
        elif _SPECIAL.fullmatch(sign):
            raise SheetError("error", f"this server reads no {sign} here in patterns")
        else:
            parts.append("." if sign == "." else re.escape(sign))
    return re.compile("".join(parts), re.DOTALL), len(parts)
