"""In-memory spreadsheets and their operations."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from agentgym_servers._frame.tool_tasks import CallRefused
from agentgym_servers.sheet._cells import (
    EMPTY,
    SheetCell,
    SheetError,
    calculate,
    format_value,
    indices_of,
    matcher,
    name_of,
    order_of,
    place_of,
    value_of,
)

__all__ = ["Book", "NotOpen", "Rows", "Sheet", "values_of"]

Rows: TypeAlias = "Sequence[Sequence[SheetCell]]"

_TEXT = 20_000  # maximum characters in the cells and notes of a sheet, so that responses stay small


class Sheet:
    """One sheet.

    Args:
        rows: The initial rows.
    """

    def __init__(self, rows: Rows) -> None:
        self._rows = [list(row) for row in rows]
        self._frozen = 0

    def values(self) -> list[list[str]]:
        """Return all displayed values, up to the last row and column with any."""
        return values_of(self._rows)

    def value(self, place: tuple[int, int]) -> str:
        """Return the displayed value of a cell."""
        return format_value(self._cell(place).value)

    def range_values(self, start: Any, end: Any) -> list[list[str]]:
        """Return the displayed values of a range."""
        (top, left), (bottom, right) = _ends(start, end)
        return [
            [self.value((row, column)) for column in range(left, right + 1)] for row in range(top, bottom + 1)
        ]

    def note(self, position: Any) -> str:
        """Return the note of a cell."""
        return self._cell(place_of(position)).note

    def find(self, query: str, row: int | None, column: int | None) -> list[str]:
        """Return the names of the cells that match a pattern."""
        matches = matcher(query)
        return [
            name_of(r, c)
            for r, line in enumerate(self._rows)
            if row in {None, r + 1}
            for c, cell in enumerate(line)
            if column in {None, c + 1} and cell.value != "" and matches(format_value(cell.value))
        ]

    def calculate(self, operator: Any, places: Iterable[tuple[int, int]]) -> str | float:
        """Return the result of a calculation over cells."""
        return calculate(operator, [self._cell(place).value for place in places])

    def freeze(self, rows: int) -> None:
        """Exclude the first rows from sorting."""
        self._frozen = rows

    def write(self, cells: Mapping[tuple[int, int], Any]) -> None:
        """Write values into cells and keep their notes."""
        new = {place: SheetCell(value_of(each), self._cell(place).note) for place, each in cells.items()}
        self._put(new)

    def put_note(self, position: Any, content: Any) -> None:
        """Set the note of a cell."""
        place = place_of(position)
        self._put({place: SheetCell(self._cell(place).value, str(content))})

    def merge(self, start: Any, end: Any) -> None:
        """Merge a range: all its cells show the value of the first one."""
        (top, left), (bottom, right) = _ends(start, end)
        first = self._cell((top, left))
        places = [(row, column) for row in range(top, bottom + 1) for column in range(left, right + 1)]
        self._put({place: SheetCell(first.value, self._cell(place).note) for place in places})

    def insert_rows(self, values: Sequence[Sequence[Any]], before: int) -> None:
        """Insert rows before a row index, counted from 0."""
        new = [[SheetCell(value_of(each)) for each in row] for row in values]
        self._commit([*self._padded(rows=before)[:before], *new, *self._rows[before:]])

    def insert_columns(self, values: Sequence[Sequence[Any]], before: int) -> None:
        """Insert columns before a column index, counted from 0."""
        new = [[SheetCell(value_of(each)) for each in column] for column in values]
        height = max(len(self._rows), *map(len, new)) if new else len(self._rows)
        self._commit(
            [
                [*row[:before], *(column[r] if r < len(column) else EMPTY for column in new), *row[before:]]
                for r, row in enumerate(self._padded(rows=height, columns=before))
            ]
        )

    def delete_rows(self, rows: set[int]) -> None:
        """Delete rows by their indices, counted from 0."""
        self._commit([row for r, row in enumerate(self._rows) if r not in rows])

    def delete_columns(self, columns: set[int]) -> None:
        """Delete columns by their indices, counted from 0."""
        self._commit([[cell for c, cell in enumerate(row) if c not in columns] for row in self._rows])

    def sort(self, column: int, *, descending: bool) -> None:
        """Sort all rows except the frozen ones by a column, counted from 0; empty cells come last."""
        rows = self._padded(columns=column + 1)
        head, body = rows[: self._frozen], rows[self._frozen :]
        filled = [row for row in body if row[column].value != ""]
        filled.sort(key=lambda row: order_of(row[column].value), reverse=descending)
        self._commit([*head, *filled, *(row for row in body if row[column].value == "")])

    def _cell(self, place: tuple[int, int]) -> SheetCell:
        row, column = place
        return self._rows[row][column] if row < len(self._rows) and column < len(self._rows[row]) else EMPTY

    def _padded(self, *, rows: int = 0, columns: int = 0) -> list[list[SheetCell]]:
        """Return copies of the rows, padded to a minimum number of rows and columns."""
        width = max(columns, *map(len, self._rows)) if self._rows else columns
        padded = [[*row, *[EMPTY] * (width - len(row))] for row in self._rows]
        return padded + [[EMPTY] * width for _ in range(rows - len(padded))]

    def _put(self, cells: Mapping[tuple[int, int], SheetCell]) -> None:
        rows = self._padded(
            rows=1 + max((row for row, _ in cells), default=0),
            columns=1 + max((column for _, column in cells), default=0),
        )
        for (row, column), cell in cells.items():
            rows[row][column] = cell
        self._commit(rows)

    def _commit(self, rows: list[list[SheetCell]]) -> None:
        """Replace the rows.

        Raises:
            SheetError: The rows are too many, too wide, or contain too much text. The sheet is unchanged.
        """
        indices_of(max(1, len(rows)), max(1, *map(len, rows)) if rows else 1)
        if sum(len(format_value(cell.value)) + len(cell.note) for row in rows for cell in row) > _TEXT:
            raise SheetError("APIError", f"the cells of a sheet hold at most {_TEXT} characters")
        self._rows = rows


class NotOpen(CallRefused):
    """No sheet is open."""


class Book:
    """A user's sheets; at most one is open.

    Args:
        sheets: The initial contents, by name.
    """

    def __init__(self, sheets: Mapping[str, Rows]) -> None:
        self._first = sheets
        self._sheets: dict[str, Sheet] = {}  # the opened ones
        self._deleted: set[str] = set()
        self._open: Sheet | None = None

    @property
    def sheet(self) -> Sheet:
        """The open sheet.

        Raises:
            NotOpen: No sheet is open.
        """
        if self._open is None:
            raise NotOpen("Please open a sheet before operating it")
        return self._open

    def check_open(self) -> None:
        """Check that a sheet is open.

        Raises:
            NotOpen: No sheet is open.
        """
        _ = self.sheet

    def open(self, name: Any) -> str:
        """Open a sheet."""
        if not self._has(name):
            raise SheetError("WorksheetNotFound", str(name))
        if name not in self._sheets:
            self._sheets[name] = Sheet(self._first[name])
        self._open = self._sheets[name]
        return f"<Worksheet {name!r} id:{list(self._first).index(name)}>"

    def delete(self, name: Any) -> str:
        """Delete a sheet."""
        if not self._has(name):
            raise SheetError("WorksheetNotFound", str(name))
        self._deleted.add(name)
        if self._sheets.pop(name, None) is self._open:
            self._open = None
        return f"You have deleted sheet {name} successfully"

    def _has(self, name: Any) -> bool:
        return isinstance(name, str) and name in self._first and name not in self._deleted

    def values(self, name: str) -> list[list[str]]:
        """Return all values of a sheet, open or not; a deleted sheet has none."""
        if name in self._deleted:
            return [[]]
        return self._sheets[name].values() if name in self._sheets else values_of(self._first[name])


def values_of(rows: Rows) -> list[list[str]]:
    """Return the displayed values of rows, up to the last row and column with any."""
    values = [[format_value(cell.value) for cell in row] for row in rows]
    height = max((r for r, row in enumerate(values, start=1) if any(row)), default=0)
    width = max((c for row in values for c, each in enumerate(row, start=1) if each), default=0)
    return [(row + [""] * width)[:width] for row in values[:height]] or [[]]


def _ends(start: Any, end: Any) -> tuple[tuple[int, int], tuple[int, int]]:
    (top, left), (bottom, right) = place_of(start), place_of(end)
    return (min(top, bottom), min(left, right)), (max(top, bottom), max(left, right))
