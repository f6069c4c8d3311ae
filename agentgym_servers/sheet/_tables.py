"""Random tables, and the building blocks of Sheet's tasks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from agentgym_servers._frame.data_files import read_json
from agentgym_servers._frame.tool_tasks import FunctionCall
from agentgym_servers.sheet._cells import SheetCell, Value, format_value, name_of

if TYPE_CHECKING:
    from agentgym_servers._frame.draw import Draw

__all__ = [
    "WORDS",
    "SheetDraft",
    "SheetTable",
    "delete_rows",
    "duties",
    "fill",
    "format_rows",
    "grades",
    "inventory",
    "sort",
    "write",
]


WORDS: Mapping[str, list[Any]] = read_json("sheet", "words.json")
"""The contents of the sheets: products with their categories, people, duties and so on."""


@dataclass
class SheetTable:
    """A heading and rows below it.

    Attributes:
        heading: The names of the columns.
        rows: The values of each row.
        notes: The notes on cells, by row and name of the column.
    """

    heading: list[str]
    rows: list[list[Value]]
    notes: dict[tuple[int, str], str] = field(default_factory=dict)

    def at(self, column: str) -> int:
        """Return the index of a column, from 0."""
        return self.heading.index(column)

    def column(self, name: str) -> list[Any]:
        """Return the values of a column."""
        return [row[self.at(name)] for row in self.rows]

    def cell(self, row: int, column: str) -> str:
        """Return the name of a cell by its row, counted from 0 below the heading."""
        return name_of(row + 1, self.at(column))

    def records(self) -> list[dict[str, Any]]:
        """Return the rows as mappings from column names to values."""
        return [dict(zip(self.heading, row, strict=True)) for row in self.rows]

    @property
    def cells(self) -> tuple[tuple[SheetCell, ...], ...]:
        """The table as the cells of a sheet."""
        head = tuple(map(SheetCell, self.heading))
        body = (
            tuple(
                SheetCell(value, self.notes.get((r, name), ""))
                for name, value in zip(self.heading, row, strict=True)
            )
            for r, row in enumerate(self.rows)
        )
        return (head, *body)


@dataclass(frozen=True)
class SheetDraft:
    """A sheet and the changes to make in it.

    Attributes:
        goal: The instruction for the agent; ``{sheet}`` is a placeholder for the name of the sheet.
        cells: The initial sheet.
        calls: The calls that make the changes, once the sheet is open.
    """

    goal: str
    cells: Sequence[Sequence[SheetCell]]
    calls: tuple[FunctionCall, ...]


def inventory(draw: Draw, rows: int = 10) -> SheetTable:
    """Return products with prices and other columns; quantities, prices and ratings are unique."""
    products = draw.some(WORDS["products"], rows)
    prices, quantities = draw.some(range(8, 90), rows), draw.some(range(40, 200), rows)
    ratings = draw.some(range(20, 50), rows)
    return SheetTable(
        ["Product", "Category", "Price", "Quantity", "Discount", "Store", "Rating"],
        [
            [
                product,
                category,
                prices[row] / 4,
                float(quantities[row]),
                draw.below(5) * 0.05,
                draw.one(WORDS["stores"]),
                ratings[row] / 10,
            ]
            for row, (product, category) in enumerate(products)
        ],
    )


def grades(draw: Draw, rows: int = 10) -> SheetTable:
    """Return pupils with their points; the points in a subject are unique."""
    people = draw.some(WORDS["people"], rows)
    points = [draw.some(range(45, 100), rows) for _ in WORDS["subjects"]]
    return SheetTable(
        ["Name", "Class", *WORDS["subjects"]],
        [
            [person, draw.one(WORDS["classes"]), *(float(each[row]) for each in points)]
            for row, person in enumerate(people)
        ],
    )


def duties(draw: Draw, rows: int = 9) -> SheetTable:
    """Return the tasks of an office; their hours are unique."""
    names, people, hours = (
        draw.some(WORDS["duties"], rows),
        draw.some(WORDS["people"], rows),
        draw.some(range(2, 40), rows),
    )
    return SheetTable(
        ["Task", "Responsible", "Team", "Status", "Hours"],
        [
            [
                names[row],
                people[row],
                draw.one(WORDS["teams"]),
                draw.one(WORDS["statuses"]),
                float(hours[row]),
            ]
            for row in range(rows)
        ],
    )


def sort(table: SheetTable, column: str, order: str) -> tuple[FunctionCall, ...]:
    """Return the calls that sort the rows below the heading."""
    number, direction = table.at(column) + 1, "ascending" if order == "asc" else "descending"
    return (
        FunctionCall("freeze_data", {"dimension": "rows", "num": 1}).because(
            "I must sort. The heading stays in row 1, so I freeze it first."
        ),
        FunctionCall("sort_sheet_by_col", {"col_num": number, "order": order}).because(
            f'"{column}" is column {number}. I sort by it in {direction} order.'
        ),
    )


def write(table: SheetTable, row: int, column: str, value: Value, why: str = "") -> FunctionCall:
    """Return the call that writes a value into a cell; also write it into the table.

    Args:
        table: The table.
        row: The row, counted from 0 below the heading.
        column: The name of the column.
        value: The new value.
        why: Why it is written.
    """
    old, cell = format_value(table.rows[row][table.at(column)]), table.cell(row, column)
    table.rows[row][table.at(column)] = value
    change = f"{old} becomes {format_value(value)}" if old else f"I write {format_value(value)}"
    return FunctionCall("update_cell", {"position": cell, "value": value}).because(
        why, f"{table.rows[row][0]} is in row {row + 2}. Its {column} is {cell}: {change}."
    )


def fill(table: SheetTable, column: str, values: Sequence[Value], why: str) -> FunctionCall:
    """Return the call that writes all values of a column; also write them into the table.

    Args:
        table: The table.
        column: The name of the column.
        values: The new values, by row.
        why: How they follow from the sheet.
    """
    first, last = table.cell(0, column), table.cell(len(table.rows) - 1, column)
    for row, value in zip(table.rows, values, strict=True):
        row[table.at(column)] = value
    return FunctionCall(
        "update_range",
        {"start_position": first, "end_position": last, "values_list": [[each] for each in values]},
    ).because(f'"{column}" is {first} to {last}.', why)


def delete_rows(
    table: SheetTable, condition: Callable[[dict[str, Any]], bool], why: str = ""
) -> tuple[FunctionCall, ...]:
    """Return the call that deletes the rows that match a condition; also delete them from the table.

    Args:
        table: The table.
        condition: Returns whether to delete a record.
        why: The facts of the sheet on which the condition depends.
    """
    deleted = [row for row, record in enumerate(table.records()) if condition(record)]
    listed = ", ".join(f"{table.rows[row][0]} in row {row + 2}" for row in deleted)
    table.rows = [row for number, row in enumerate(table.rows) if number not in deleted]
    call = FunctionCall("delete_batch_data", {"dimension": "row", "index_list": [r + 2 for r in deleted]})
    return (call.because(why, f"To delete: {listed}."),)


def format_rows(heading: Iterable[str], rows: Iterable[Iterable[Value]]) -> str:
    """Return rows in the form that goals use."""
    return str([list(heading), *([format_value(each) for each in row] for row in rows)])
