"""School tasks of Sheet: each function makes one, or returns None if the draw gives none."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from agentgym_servers._frame.tool_tasks import FunctionCall
from agentgym_servers.sheet._tables import (
    WORDS,
    SheetDraft,
    delete_rows,
    fill,
    format_rows,
    grades,
    sort,
    write,
)

if TYPE_CHECKING:
    from agentgym_servers._frame.draw import Draw
    from agentgym_servers.sheet._cells import Value

__all__ = ["SCHOOL"]


def _sums(draw: Draw) -> SheetDraft | None:
    """Calculate sums and averages."""
    table = grades(draw, 8)
    table.heading += ["Sum", "Average"]
    for row in table.rows:
        row += ["", ""]
    cells = table.cells
    points = [[record[each] for each in WORDS["subjects"]] for record in table.records()]
    total = [sum(each) for each in points]
    if len(set(total)) < len(total):
        return None
    count = len(WORDS["subjects"])
    sums = (f"{'+'.join(f'{each:g}' for each in some)}={sum(some):g}" for some in points)
    averages = (f"{each:g}/{count}={each / count:g}" for each in total)
    calls = (
        fill(table, "Sum", total, f"The sums: {', '.join(sums)}."),
        fill(table, "Average", [each / count for each in total], f"The averages: {', '.join(averages)}."),
    )
    goal = (
        'Fill the columns "Sum" and "Average" of "{sheet}" with the sum and the average of the points of '
        'each pupil. Then sort the pupils by "Sum" in descending order.'
    )
    return SheetDraft(goal, cells, (*calls, *sort(table, "Sum", "des")))


def _ranks(draw: Draw) -> SheetDraft:
    """Insert a column of ranks."""
    table = grades(draw)
    subject = draw.one(WORDS["subjects"])
    column = ["Rank", *range(1, len(table.rows) + 1)]
    number = table.at(subject) + 2
    insert = FunctionCall("insert_cols", {"values_list": [column], "col_idx": number}).because(
        f'"{subject}" is column {number - 1}, so "Rank" is column {number}: 1 to {len(table.rows)}.'
    )
    goal = (
        f'Sort the pupils in "{{sheet}}" by "{subject}" in descending order. Then insert a column "Rank" '
        f'right of "{subject}" with the rank of each pupil in that subject; the best one has 1.'
    )
    return SheetDraft(goal, table.cells, (*sort(table, subject, "des"), insert))


def _impossible(draw: Draw) -> SheetDraft:
    """Delete pupils with impossible points."""
    table = grades(draw, 11)
    for row, wrong in zip(draw.some(range(len(table.rows)), 3), (-7.0, 104.0, 240.0), strict=True):
        table.rows[row][table.at(draw.one(WORDS["subjects"]))] = wrong
    cells = table.cells
    calls = delete_rows(table, lambda record: any(not 0 <= record[each] <= 100 for each in WORDS["subjects"]))  # noqa: PLR2004
    goal = (
        'In each subject there are 0 to 100 points. Delete all pupils from "{sheet}" that have other '
        "points in any subject. Leave the order of the others as it is."
    )
    return SheetDraft(goal, cells, calls)


def _newcomers(draw: Draw) -> SheetDraft:
    """Insert two pupils."""
    table = grades(draw, 9)
    names = draw.some([each for each in WORDS["people"] if each not in table.column("Name")], 2)
    new: list[list[Value]] = [
        [each, draw.one(WORDS["classes"]), *(float(draw.between(45, 99)) for _ in WORDS["subjects"])]
        for each in names
    ]
    listing = format_rows(table.heading, new)
    number = len(table.rows) + 2
    insert = FunctionCall("insert_rows", {"values_list": new, "row_idx": number}).because(
        f"The last row is {number - 1}, so the new rows start at row {number}."
    )
    goal = (
        f'Two pupils are new in "{{sheet}}": {listing}. Enter them, and then sort all by "Name" in ascending '
        "order."
    )
    return SheetDraft(goal, table.cells, (insert, *sort(table, "Name", "asc")))


def _largest_class(draw: Draw) -> SheetDraft | None:
    """Keep the largest class."""
    table = grades(draw, 12)
    cells = table.cells
    sizes = {each: table.column("Class").count(each) for each in WORDS["classes"]}
    largest = [each for each, size in sizes.items() if size == max(sizes.values())]
    if len(largest) > 1:
        return None
    why = f"The classes: {', '.join(f'{each} {size}' for each, size in sizes.items())}. I keep {largest[0]}."
    calls = delete_rows(table, lambda record: record["Class"] != largest[0], why)
    goal = (
        'Find the class with the most pupils in "{sheet}" and delete the pupils of all other classes. Then '
        'sort the pupils by "Chemistry" in descending order.'
    )
    return SheetDraft(goal, cells, (*calls, *sort(table, "Chemistry", "des")))


def _without_the_best(draw: Draw) -> SheetDraft:
    """Delete the best pupil in a subject."""
    table = grades(draw, 12)
    cells = table.cells
    best = {each: max(table.column(each)) for each in WORDS["subjects"]}
    why = f"The most points: {', '.join(f'{each} {points:g}' for each, points in best.items())}."
    calls = delete_rows(
        table, lambda record: any(record[each] == best[each] for each in WORDS["subjects"]), why
    )
    goal = (
        'Delete from "{sheet}" each pupil that has the most points of all in any subject. Then sort the '
        'others by "Biology" in ascending order.'
    )
    return SheetDraft(goal, cells, (*calls, *sort(table, "Biology", "asc")))


def _noted(draw: Draw) -> SheetDraft:
    """Correct points according to the notes."""
    table = grades(draw)
    rows = draw.some(range(len(table.rows)), 3)
    changes = [(row, draw.one(WORDS["subjects"]), float(draw.between(30, 44))) for row in rows]
    for row, subject, points in changes:
        table.notes[row, "Name"] = f"{subject}: {points:g} points"
    cells = table.cells
    names = [table.column("Name")[row] for row in rows]
    look = [
        FunctionCall("get_note", {"position": table.cell(row, "Name")}).because(
            f"{name} is in {table.cell(row, 'Name')}. I need the note there."
        )
        for row, name in zip(rows, names, strict=True)
    ]
    calls = [write(table, *each, f"The note: {table.notes[each[0], 'Name']}.") for each in changes]
    goal = (
        f'In "{{sheet}}" the points of {names[0]}, {names[1]} and {names[2]} are wrong: the notes on their '
        'names say what is right. Correct them, and then sort the pupils by "English" in descending order.'
    )
    return SheetDraft(goal, cells, (*look, *calls, *sort(table, "English", "des")))


SCHOOL: tuple[Callable[[Draw], SheetDraft | None], ...] = (
    _sums,
    _ranks,
    _impossible,
    _newcomers,
    _largest_class,
    _without_the_best,
    _noted,
)
"""All kinds of school tasks."""
