"""Fit a table into a number of columns: break cells, cut names in the middle, or split the table."""

from __future__ import annotations

import textwrap
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from rich.cells import cell_len, chop_cells

__all__ = ["Column", "body_of", "columns_of", "fit", "fits", "heading_of"]

_GAP = "  "
_SHORTEST = 12  # terminal columns of a cut name
_CUT = "…"
_ONE_LINE = 4  # terminal columns of a heading that is never broken, such as "95 %"


@dataclass(frozen=True)
class Column:
    """A column of a table.

    Attributes:
        heading: The heading, which may have several lines.
        cells: The cells, which may have several lines.
        left: Whether it is left-aligned. Such a column has names, which can be cut, and others numbers.
        peers: The headings of all columns, from which a cut heading must differ.
        plain: The columns of which this one was made, with everything on one line.
    """

    heading: str
    cells: Sequence[str]
    left: bool = False
    peers: Sequence[str] = ()
    plain: Sequence[Column] = ()

    @property
    def width(self) -> int:
        """The terminal columns of the widest line."""
        return max(_width_of(self.heading), self.cells_width)

    @property
    def cells_width(self) -> int:
        """The terminal columns of the widest line of a cell."""
        return max(map(_width_of, self.cells), default=0)

    def least(self, shortest: int) -> int:
        """Return the least width to which names can be cut so that different ones stay different."""
        shortest = shortest if self.left else max(shortest, self.cells_width)
        widths = range(min(shortest, self.width), self.width)
        return next((width for width in widths if self.cut(width) is not None), self.width)

    def cut(self, width: int) -> Column | None:
        """Return the column with longer lines cut in the middle; None if two of them would become equal."""
        names = [line for cell in self.cells for line in cell.split("\n")] if self.left else []
        heading = self.heading.split("\n")
        peers = self.peers if _width_of(self.heading) > width else ()
        short, short_heading = _shortened(names, width), _shortened([*peers, *heading], width)
        if short is None or short_heading is None:
            return None
        cells = ["\n".join(short.get(line, line) for line in cell.split("\n")) for cell in self.cells]
        return replace(self, heading="\n".join(map(short_heading.__getitem__, heading)), cells=cells)


def columns_of(headings: Sequence[str], rows: Sequence[Sequence[str]], left: Collection[str]) -> list[Column]:
    """Return the columns of a table."""
    cells = list(zip(*rows, strict=True)) if rows else [()] * len(headings)
    return [Column(heading, cells[at], heading in left, headings) for at, heading in enumerate(headings)]


def fit(columns: Sequence[Column], width: int, below: Collection[str] = ()) -> list[list[Column]]:
    """Return one or several tables, one below the other, that fit into the width.

    A table that fits is unchanged. Otherwise, in this order and only as necessary: headings are broken,
    cells are broken before a parenthesis, names are cut in the middle, and the columns are divided among
    several tables, which all begin with the columns that name a row. A table is wider than the terminal only
    if these and one more column do not fit.

    Args:
        columns: The columns.
        width: The number of terminal columns.
        below: The headings of columns that may move below the previous one.
    """
    headed = [_break_heading(column) for column in columns]
    broken = [_break_heading(_break_cells(column)) for column in _merged(columns, below)]
    for candidate in (columns, headed, broken):
        if fits(candidate, width):
            return [list(candidate)]
    if _sum(column.least(_SHORTEST) for column in broken) <= width or len(broken) <= len(_keys(broken)) + 1:
        return [_cut_names(broken, width)]
    for shortest in (max(_SHORTEST, width // 5), _SHORTEST):
        tables = list(_split(broken, width, shortest))
        if all(_sum(column.least(shortest) for column in table) <= width for table in tables):
            break
    plain = [[column for each in table for column in each.plain] for table in tables]
    return [table for part in plain for table in fit(part, width, below)]


def fits(columns: Sequence[Column], width: int) -> bool:
    """Return whether a table fits into the width with everything on one line."""
    return _total(columns) <= width


def heading_of(columns: Sequence[Column]) -> str:
    """Return the headings of a table."""
    return "\n".join(_row_lines([column.heading for column in columns], columns, at_end=True))


def body_of(columns: Sequence[Column]) -> str:
    """Return a rule and the rows of a table."""
    rows = zip(*(column.cells for column in columns), strict=True)
    return "\n".join(["─" * _total(columns), *(line for row in rows for line in _row_lines(row, columns))])


def _row_lines(row: Sequence[str], columns: Sequence[Column], *, at_end: bool = False) -> Iterator[str]:
    cells = [cell.split("\n") for cell in row]
    height = max(map(len, cells))
    for at in range(height):
        parts = []
        for cell, column in zip(cells, columns, strict=True):
            line = at - (height - len(cell) if at_end else 0)
            text = cell[line] if 0 <= line < len(cell) else ""
            space = " " * (column.width - cell_len(text))
            parts.append(text + space if column.left else space + text)
        yield _GAP.join(parts).rstrip()


def _merged(columns: Sequence[Column], below: Collection[str]) -> list[Column]:
    merged: list[Column] = []
    for column in columns:
        if column.heading in below and merged:
            upper = merged[-1]
            pairs = zip(upper.cells, column.cells, strict=True)
            cells = [f"{first}\n{second}" if second not in {"", "-"} else first for first, second in pairs]
            heading = f"{upper.heading}\n{column.heading.removeprefix(f'{upper.heading} ')}"
            merged[-1] = replace(upper, heading=heading, cells=cells, plain=(*upper.plain, column))
        else:
            merged.append(replace(column, plain=(column,)))
    return merged


def _break_heading(column: Column) -> Column:
    room = max([column.cells_width, _ONE_LINE, *map(cell_len, column.heading.split())])
    lines = [
        textwrap.fill(line, room, break_long_words=False, break_on_hyphens=False)
        for line in column.heading.split("\n")
    ]
    return replace(column, heading="\n".join(lines))


def _break_cells(column: Column) -> Column:
    return replace(column, cells=[cell.replace(" (", "\n(").replace("), ", "),\n") for cell in column.cells])


def _split(columns: Sequence[Column], width: int, shortest: int) -> Iterator[list[Column]]:
    """Divide columns among tables that fit with shortened names; each has the same first columns."""
    keys = _keys(columns)
    others = columns[len(keys) :]
    table: list[Column] = []
    for column in others:
        if table and _sum(each.least(shortest) for each in (*keys, *table, column)) > width:
            yield [*keys, *table]
            table = []
        table.append(column)
    yield [*keys, *table]


def _keys(columns: Sequence[Column]) -> Sequence[Column]:
    """Return the columns that name a row: the left-aligned ones at the beginning, or only the first."""
    first = next((at for at, column in enumerate(columns) if not column.left), len(columns))
    return columns[: first if first < len(columns) else 1]


def _cut_names(columns: Sequence[Column], width: int) -> list[Column]:
    """Cut the longest names, as little as necessary."""
    least = [column.least(_SHORTEST) for column in columns]
    for longest in range(max(column.width for column in columns), 0, -1):
        widths = [max(low, min(column.width, longest)) for column, low in zip(columns, least, strict=True)]
        if _sum(widths) <= width:
            break
    return [column.cut(most) or column for column, most in zip(columns, widths, strict=True)]


def _shortened(names: Sequence[str], width: int) -> dict[str, str] | None:
    """Cut names in the middle; return None if different names would become equal."""
    distinct = list(dict.fromkeys(names))
    if all(cell_len(name) <= width for name in distinct):
        return {name: name for name in distinct}
    usual = round(width * 0.6)
    for head in sorted(range(1, width - 1), key=lambda head: abs(head - usual)):
        short = {name: _cut(name, head, width) for name in distinct}
        if len(set(short.values())) == len(distinct):
            return short
    return None


def _cut(name: str, head: int, width: int) -> str:
    if cell_len(name) <= width:
        return name
    tail = width - head - cell_len(_CUT)
    return f"{chop_cells(name, head)[0]}{_CUT}{chop_cells(name[::-1], tail)[0][::-1]}"


def _width_of(text: str) -> int:
    return max(map(cell_len, text.split("\n")))


def _total(columns: Sequence[Column]) -> int:
    return _sum(column.width for column in columns)


def _sum(widths: Iterable[int]) -> int:
    widths = list(widths)
    return sum(widths) + len(_GAP) * (len(widths) - 1)
