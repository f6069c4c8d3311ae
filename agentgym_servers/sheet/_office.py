"""Office tasks of Sheet: each function makes one, or returns None if the draw gives none."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from agentgym_servers._frame.tool_tasks import FunctionCall
from agentgym_servers.sheet._cells import EMPTY, name_of
from agentgym_servers.sheet._tables import (
    WORDS,
    SheetDraft,
    delete_rows,
    duties,
    fill,
    format_rows,
    sort,
    write,
)

if TYPE_CHECKING:
    from agentgym_servers._frame.draw import Draw

__all__ = ["OFFICE"]


def _completed(draw: Draw) -> SheetDraft:
    """Delete the completed tasks."""
    table = duties(draw, 11)
    cells = table.cells
    number = table.at("Status") + 1
    find = FunctionCall("filter_cells", {"query": "Completed", "in_column": number}).because(
        f'"Status" is column {number}. I search it for "Completed".'
    )
    calls = delete_rows(table, lambda record: record["Status"] == "Completed")
    goal = (
        'Delete the tasks with the status "Completed" from "{sheet}". Then sort the others by "Hours" in '
        "descending order."
    )
    return SheetDraft(goal, cells, (find, *calls, *sort(table, "Hours", "des")))


def _progress(draw: Draw) -> SheetDraft:
    """Enter new statuses and hours."""
    table = duties(draw)
    cells = table.cells
    rows = draw.some(range(len(table.rows)), 3)
    new = [
        (table.column("Task")[row], draw.one(WORDS["statuses"]), float(draw.between(41, 60))) for row in rows
    ]
    hours = draw.some(range(41, 61), 3)
    new = [(task, status, float(each)) for (task, status, _), each in zip(new, hours, strict=True)]
    changes = [
        write(table, row, column, each)
        for row, (_, status, spent) in zip(rows, new, strict=True)
        for column, each in (("Status", status), ("Hours", spent))
    ]
    goal = (
        f'There is news of some tasks in "{{sheet}}": {format_rows(["Task", "Status", "Hours"], new)}. Enter '
        "it, and "
        'then sort the tasks by "Hours" in ascending order.'
    )
    return SheetDraft(goal, cells, (*changes, *sort(table, "Hours", "asc")))


def _missing(draw: Draw) -> SheetDraft:
    """Fill in the missing people."""
    table = duties(draw)
    rows = sorted(draw.some(range(len(table.rows)), 4))
    names = draw.some(
        [each for each in WORDS["people"] if each not in table.column("Responsible")], len(rows)
    )
    for row in rows:
        table.rows[row][table.at("Responsible")] = ""
    cells = table.cells
    changes = [write(table, row, "Responsible", each) for row, each in zip(rows, names, strict=True)]
    goal = (
        f'Some tasks in "{{sheet}}" have nobody responsible. Fill in these names, from the first such row '
        f'to the last: {names}. Then sort the tasks by "Task" in ascending order.'
    )
    return SheetDraft(goal, cells, (*changes, *sort(table, "Task", "asc")))


def _team_hours(draw: Draw) -> SheetDraft | None:
    """Calculate the hours of each team, and merge them."""
    table = duties(draw, 8)
    table.heading.append("Team Hours")
    for row in table.rows:
        row.append("")
    cells = table.cells
    calls = sort(table, "Team", "asc")
    table.rows.sort(key=lambda row: str(row[table.at("Team")]))
    teams = table.column("Team")
    hours = {team: sum(r["Hours"] for r in table.records() if r["Team"] == team) for team in teams}
    merges = [
        FunctionCall(
            "merge_cells",
            {
                "start_position": table.cell(first, "Team Hours"),
                "end_position": table.cell(last, "Team Hours"),
            },
        ).because(f"The team {teams[first]} is in rows {first + 2} to {last + 2}. I merge its cells.")
        for first, last in ((teams.index(each), teams.index(each) + teams.count(each) - 1) for each in hours)
        if first < last
    ]
    if len(hours) < 3 or not merges:  # noqa: PLR2004 - so that there is something to add up
        return None
    why = f"The hours: {', '.join(f'{team} {hours[team]:g}' for team in hours)}."
    filled = fill(table, "Team Hours", [hours[each] for each in teams], why)
    goal = (
        'Sort the tasks in "{sheet}" by "Team" in ascending order. Then write into "Team Hours" the sum of '
        "the hours of all tasks of the same team, and merge the cells of each team into one."
    )
    return SheetDraft(goal, cells, (*calls, filled, *merges))


def _gaps(draw: Draw) -> SheetDraft:
    """Delete empty rows and columns."""
    table = duties(draw, 8)
    rows = [list(row) for row in table.cells]
    column = draw.between(1, 4)
    for row in rows:
        row.insert(column, EMPTY)
    lines = sorted(draw.some(range(2, 8), 3))
    for line in reversed(lines):
        rows.insert(line, [EMPTY] * len(rows[0]))
    empty = [number + 1 for number, row in enumerate(rows) if all(cell == EMPTY for cell in row)]
    calls = (
        FunctionCall("delete_batch_data", {"dimension": "row", "index_list": empty}).because(
            f"The empty rows: {', '.join(map(str, empty))}."
        ),
        FunctionCall("delete_batch_data", {"dimension": "col", "index_list": [column + 1]}).because(
            f"The empty column: {column + 1}."
        ),
        FunctionCall("merge_cells", {"start_position": name_of(0, 0), "end_position": name_of(0, 1)}).because(
            f"The first two headings are {name_of(0, 0)} and {name_of(0, 1)}. I merge them."
        ),
    )
    goal = (
        'Delete the empty rows and the empty column of "{sheet}", and then merge the headings of the first '
        "and second column into one cell."
    )
    return SheetDraft(goal, rows, calls)


OFFICE: tuple[Callable[[Draw], SheetDraft | None], ...] = (
    _completed,
    _progress,
    _missing,
    _team_hours,
    _gaps,
)
"""All kinds of office tasks."""
