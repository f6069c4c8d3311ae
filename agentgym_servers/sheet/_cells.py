"""What stands in the cells of a sheet: values, how they are shown, calculated, ordered and found."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias

__all__ = [
    "COLUMNS",
    "EMPTY",
    "OPERATORS",
    "ROWS",
    "Refused",
    "SheetCell",
    "Value",
    "calculated",
    "checked",
    "matcher",
    "name_of",
    "order_of",
    "place_of",
    "shown",
    "value_of",
]

Value: TypeAlias = "str | float"

ROWS = 100
"""Most rows of a sheet."""

COLUMNS = 26
"""Most columns of a sheet, so that each is named by one letter."""

_CHARS = 200
_LARGEST = 1e15  # below it a float holds each whole number
_PLACE = re.compile(r"([A-Z])([1-9][0-9]{0,4})", re.ASCII)
_SPECIAL = re.compile(r"[][(){}?*+^$|\\]")


class Refused(Exception):
    """What is said in place of a result, as the ``repr`` of an error.

    Args:
        kind: The name of the error.
        text: What it says.
    """

    def __init__(self, kind: str, text: str) -> None:
        super().__init__(f"{kind}({text!r})")


class SheetCell(NamedTuple):
    """A cell.

    Attributes:
        value: Text or a number; the empty text if there is nothing in it.
        note: What is noted on it.
    """

    value: Value = ""
    note: str = ""


EMPTY = SheetCell()
"""A cell with nothing in it."""


def value_of(given: Any) -> Value:
    """Return what is written into a cell; text that reads as a number is one.

    Raises:
        Refused: It is neither text nor a number, or it is too long or too large.
    """
    if isinstance(given, str):
        if len(given) > _CHARS:
            raise Refused("ValueError", f"a cell holds at most {_CHARS} characters")
        try:
            number = float(given)
        except ValueError:
            return given
        return number if math.isfinite(number) and abs(number) < _LARGEST else given
    if not isinstance(given, (bool, int, float)):
        raise Refused("TypeError", f"a cell holds text or a number, not a {type(given).__name__}")
    if not abs(given) < _LARGEST:
        raise Refused("ValueError", f"a number must be below {_LARGEST:g}")
    return float(given)


def shown(value: Value) -> str:
    """Return a value as the sheet shows it: whole numbers bare, others with two decimal places."""
    if isinstance(value, str):
        return value
    text = f"{value:.2f}".removesuffix(".00")
    return "0" if text == "-0" else text


def order_of(value: Value) -> tuple[bool, float, str]:
    """Return by what values are sorted: numbers, then text, without regard to capitals."""
    if isinstance(value, str):
        return True, 0.0, value.lower()
    return False, value, ""


def place_of(name: Any) -> tuple[int, int]:
    """Return the row and the column of a cell, from 0, by a name such as B2.

    Raises:
        Refused: It is no name of a cell, or of none that the sheet has.
    """
    found = _PLACE.fullmatch(name) if isinstance(name, str) else None
    if found is None:
        raise Refused("IncorrectCellLabel", "positions are written as A1, B2 and so on, from A to Z")
    return checked(int(found[2]), ord(found[1]) - ord("A") + 1)


def checked(row: int, column: int) -> tuple[int, int]:
    """Return a row and a column, which are counted from 1, counted from 0.

    Raises:
        Refused: The sheet has no such row or column.
    """
    if not (1 <= row <= ROWS and 1 <= column <= COLUMNS):
        raise Refused("APIError", f"the range exceeds the grid of {ROWS} rows and {COLUMNS} columns")
    return row - 1, column - 1


def name_of(row: int, column: int) -> str:
    """Return the name of a cell by its row and column, from 0."""
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
"""What can be calculated of the numbers in some cells; None where it cannot."""


def calculated(operator: Any, values: Sequence[Value]) -> Value:
    """Return the result of a calculation; text is left out, as Google's spreadsheets do.

    Raises:
        Refused: There is no such operator.
    """
    calculate = OPERATORS.get(operator) if isinstance(operator, str) else None
    if calculate is None:
        raise Refused("ValueError", f"the operator should be one of {list(OPERATORS)}")
    result = calculate([each for each in values if isinstance(each, float)])
    if result is None:
        return "#N/A" if operator == "MINUS" else "#DIV/0!"
    return result if abs(result) < _LARGEST else "#NUM!"


def matcher(pattern: str) -> Callable[[str], bool]:
    """Return whether text is found by a pattern; each text takes linear time.

    A pattern is one or several alternatives with ``|``, all in parentheses or not, with ``^`` and ``$``
    around each or around all. In them ``.*`` is any text, ``.`` one character, and a backslash makes a sign
    plain.

    Raises:
        Refused: The pattern has other signs of regular expressions, or is too long.
    """
    if len(pattern) > _CHARS:
        raise Refused("error", f"a pattern has at most {_CHARS} characters")
    all_begin, all_end = pattern.startswith("^("), pattern.endswith(")$")
    inner = pattern[all_begin:]
    inner = inner[: len(inner) - all_end]
    if inner.startswith("(") and inner.endswith(")"):
        inner = inner[1:-1]
    ways = [_Way(each, begin=all_begin, end=all_end) for each in inner.split("|")]
    return lambda text: any(way.finds(text) for way in ways)


class _Way:
    """One alternative of a pattern: pieces of text with anything between them."""

    def __init__(self, written: str, *, begin: bool, end: bool) -> None:
        self._begin = begin or written.startswith("^")
        self._end = end or (written.endswith("$") and not written.endswith("\\$"))
        inner = written.removeprefix("^")
        inner = inner.removesuffix("$") if self._end else inner
        self._pieces = [_piece(each) for each in inner.split(".*")]

    def finds(self, text: str) -> bool:
        """Return whether it is in the text; each piece is looked for once, from where the last one ends."""
        here = 0
        *firsts, (last, length) = self._pieces
        for number, (piece, _) in enumerate(firsts):
            found = piece.match(text, here) if self._begin and number == 0 else piece.search(text, here)
            if found is None:
                return False
            here = found.end()
        if self._end:
            start = len(text) - length
            at_begin = start == 0 or not self._begin or bool(firsts)
            return start >= here and at_begin and last.match(text, start) is not None
        fits = last.match if self._begin and not firsts else last.search
        return fits(text, here) is not None


def _piece(written: str) -> tuple[re.Pattern[str], int]:
    """Return a piece as a pattern without repetition, and how many characters it takes.

    Raises:
        Refused: It has signs of regular expressions that are not read here.
    """
    found = []
    rest = iter(written)
    for sign in rest:
        if sign == "\\":
            following = next(rest, "")
            if not following or following.isalnum():
                raise Refused("error", "this server reads no classes in patterns")
            found.append(re.escape(following))
        elif _SPECIAL.fullmatch(sign):
            raise Refused("error", f"this server reads no {sign} here in patterns")
        else:
            found.append("." if sign == "." else re.escape(sign))
    return re.compile("".join(found), re.DOTALL), len(found)
