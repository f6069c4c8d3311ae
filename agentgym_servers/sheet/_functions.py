"""The functions of the Sheet server, with the names and arguments of AgentGym's."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from agentgym_servers.sheet._cells import (
    COLUMNS,
    ROWS,
    SheetError,
    format_value,
    indices_of,
    name_of,
    place_of,
)

if TYPE_CHECKING:
    from agentgym_servers.sheet._book import Book

__all__ = ["FUNCTIONS", "Names"]

_MOST_DIGITS = 9

Names = Callable[[Callable[[str], bool]], tuple[str, ...]]
"""Returns the argument names of a function; its parameter tests whether an argument is present."""


def _integer(value: Any) -> int:
    """Return an integer, which the agent may write as text.

    Raises:
        SheetError: The value is not an integer.
    """
    if isinstance(value, str) and value.isdecimal() and value.isascii() and len(value) <= _MOST_DIGITS:
        return int(value)
    if not isinstance(value, int) or isinstance(value, bool):
        raise SheetError("ValueError", "a whole number is expected")
    return value


def _table(values: Any) -> list[list[Any]]:
    """Return a list of lists.

    Raises:
        SheetError: The value is not a list of lists, or is too large for a sheet.
    """
    if not isinstance(values, list) or not all(isinstance(each, list) for each in values):
        raise SheetError("TypeError", "values_list must be a list of lists")
    if len(values) > ROWS or any(len(each) > ROWS for each in values):
        raise SheetError("APIError", "values_list is larger than a sheet")
    return values


def _positions(values: Any) -> list[Any]:
    if not isinstance(values, list) or len(values) > ROWS * COLUMNS:
        raise SheetError("TypeError", "position_list must be a list of positions")
    return values


def _range(start: Any, end: Any) -> list[tuple[int, int]]:
    (top, left), (bottom, right) = place_of(start), place_of(end)
    rows, columns = (
        range(min(top, bottom), max(top, bottom) + 1),
        range(min(left, right), max(left, right) + 1),
    )
    return [(row, column) for row in rows for column in columns]


def _open_sheet(book: Book, name: Any) -> str:
    return book.open(name)


def _del_sheet(book: Book, name: Any) -> str:
    book.check_open()
    return book.delete(name)


def _freeze_data(book: Book, dimension: Any, num: Any) -> str:
    """Exclude the first rows or columns from sorting."""
    sheet, count = book.sheet, _integer(num)
    if dimension not in ("rows", "columns"):
        raise SheetError("ValueError", "the dimension is rows or columns")
    limit = ROWS if dimension == "rows" else COLUMNS
    if not 0 <= count < limit:
        raise SheetError("APIError", f"cannot freeze {count} {dimension}: the sheet has {limit}")
    if dimension == "rows":
        sheet.freeze(count)
    return f"You have successfully freeze the {dimension} {count}"


def _get_a1_annotation(book: Book, row: Any, col: Any) -> str:
    book.check_open()
    return name_of(*indices_of(_integer(row), _integer(col)))


def _insert_cols(book: Book, values_list: Any, col_idx: Any) -> list[list[str]]:
    sheet = book.sheet
    sheet.insert_columns(_table(values_list), indices_of(1, _integer(col_idx))[1])
    return sheet.values()


def _insert_rows(book: Book, values_list: Any, row_idx: Any) -> list[list[str]]:
    sheet = book.sheet
    sheet.insert_rows(_table(values_list), indices_of(_integer(row_idx), 1)[0])
    return sheet.values()


def _delete_batch_data(book: Book, dimension: Any, index_list: Any) -> list[list[str]]:
    sheet, values = book.sheet, book.sheet.values()
    if dimension not in ("row", "col"):
        raise SheetError("ValueError", "the dimension is row or col")
    if not isinstance(index_list, list) or len(index_list) > ROWS:
        raise SheetError("TypeError", "index_list must be a list of numbers")
    rows = dimension == "row"
    indices = {
        indices_of(_integer(each), 1)[0] if rows else indices_of(1, _integer(each))[1] for each in index_list
    }
    if len(indices) >= (len(values) - 1 if rows else len(values[0])):
        raise SheetError("ValueError", "the whole sheet cannot be deleted at once")
    (sheet.delete_rows if rows else sheet.delete_columns)(indices)
    return sheet.values()


def _update_cell(book: Book, position: Any, value: Any) -> list[list[str]]:
    sheet = book.sheet
    sheet.write({place_of(position): value})
    return sheet.values()


def _update_cell_by_formula(
    book: Book,
    operator: Any,
    result_position: Any,
    position_list: Any = None,
    start_position: Any = None,
    end_position: Any = None,
) -> list[list[str]]:
    """Write the result of a calculation into a cell."""
    sheet = book.sheet
    places = _places(position_list, start_position, end_position)
    sheet.write({place_of(result_position): sheet.calculate(operator, places)})
    return sheet.values()


def _update_range(book: Book, start_position: Any, end_position: Any, values_list: Any) -> list[list[str]]:
    sheet, values = book.sheet, book.sheet.values()
    if place_of(start_position) == (0, 0) and place_of(end_position) == (len(values) - 1, len(values[0]) - 1):
        raise SheetError("ValueError", "the whole sheet cannot be written at once")
    table, places = _table(values_list), set(_range(start_position, end_position))
    top, left = min(places)
    cells = {(top + r, left + c): each for r, row in enumerate(table) for c, each in enumerate(row)}
    if not set(cells) <= places:
        raise SheetError("APIError", "values_list is larger than the range")
    sheet.write(cells)
    return sheet.values()


def _sort_sheet_by_col(book: Book, col_num: Any, order: Any) -> list[list[str]]:
    sheet = book.sheet
    if order not in ("asc", "des"):
        raise SheetError("ValueError", "the order is asc or des")
    sheet.sort(indices_of(1, _integer(col_num))[1], descending=order == "des")
    return sheet.values()


def _merge_cells(book: Book, start_position: Any, end_position: Any) -> list[list[str]]:
    sheet = book.sheet
    sheet.merge(start_position, end_position)
    return sheet.values()


def _update_note(book: Book, position: Any, content: Any) -> str:
    sheet = book.sheet
    sheet.put_note(position, content)
    return f"Updated! the {position}'s note is {sheet.note(position)}"


def _get_all_values(book: Book) -> list[list[str]]:
    return book.sheet.values()


def _get_range_values(book: Book, start_position: Any, end_position: Any) -> list[list[str]]:
    return book.sheet.range_values(start_position, end_position)


def _get_cell_value(book: Book, position: Any) -> str | None:
    """Return the value of a cell; None if the cell is empty."""
    return book.sheet.value(place_of(position)) or None


def _get_value_by_formula(
    book: Book,
    operator: Any,
    position_list: Any = None,
    start_position: Any = None,
    end_position: Any = None,
) -> str:
    """Return the result of a calculation."""
    sheet = book.sheet
    return format_value(sheet.calculate(operator, _places(position_list, start_position, end_position)))


def _filter_cells(book: Book, query: Any, in_row: Any = None, in_column: Any = None) -> list[str]:
    """Return the names of the cells that match a pattern."""
    sheet = book.sheet
    row, column = (None if each is None else _integer(each) for each in (in_row, in_column))
    return sheet.find(str(query), row, column)


def _get_note(book: Book, position: Any) -> str:
    return book.sheet.note(position)


def _places(position_list: Any, start: Any, end: Any) -> list[tuple[int, int]]:
    return (
        _range(start, end)
        if position_list is None
        else [place_of(each) for each in _positions(position_list)]
    )


def _exactly(*names: str) -> Names:
    return lambda _has_argument: names


def _cells_or_range(*names: str) -> Names:
    """Return the arguments of a formula: a list of cells if the agent passes one, else a range."""
    return lambda has_argument: (
        ("position_list", *names)
        if has_argument("position_list")
        else ("start_position", "end_position", *names)
    )


def _with_optional(required: str, *optional: str) -> Names:
    return lambda has_argument: (required, *(each for each in optional if has_argument(each)))


FUNCTIONS: dict[str, tuple[Callable[..., object], Names]] = {
    "open_sheet": (_open_sheet, _exactly("name")),
    "del_sheet": (_del_sheet, _exactly("name")),
    "freeze_data": (_freeze_data, _exactly("dimension", "num")),
    "get_A1_annotation": (_get_a1_annotation, _exactly("row", "col")),
    "insert_cols": (_insert_cols, _exactly("values_list", "col_idx")),
    "insert_rows": (_insert_rows, _exactly("values_list", "row_idx")),
    "delete_batch_data": (_delete_batch_data, _exactly("dimension", "index_list")),
    "update_cell": (_update_cell, _exactly("position", "value")),
    "update_cell_by_formula": (_update_cell_by_formula, _cells_or_range("operator", "result_position")),
    "update_range": (_update_range, _exactly("start_position", "end_position", "values_list")),
    "sort_sheet_by_col": (_sort_sheet_by_col, _exactly("col_num", "order")),
    "merge_cells": (_merge_cells, _exactly("start_position", "end_position")),
    "update_note": (_update_note, _exactly("position", "content")),
    "get_all_values": (_get_all_values, _exactly()),
    "get_range_values": (_get_range_values, _exactly("start_position", "end_position")),
    "get_cell_value": (_get_cell_value, _exactly("position")),
    "get_value_by_formula": (_get_value_by_formula, _cells_or_range("operator")),
    "filter_cells": (_filter_cells, _with_optional("query", "in_row", "in_column")),
    "get_note": (_get_note, _exactly("position")),
}
"""All functions except ``finish``, in AgentGym's order."""
