"""Questions about a database of the SQLGym server, each with the statement that answers it."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, TypeAlias

from agentgym_servers.sqlgym._selections import RowSelection, Selector, words

if TYPE_CHECKING:
    from agentgym_servers._frame.draw import Draw
    from agentgym_servers.sqlgym._rows import Row
    from agentgym_servers.sqlgym._schema import Database, LinkColumn, NumberColumn, PickColumn, TableSchema

__all__ = ["MOST_ROWS", "SqlQuestion", "questions"]

SqlQuestion: TypeAlias = tuple[str, str]  # the question as text, and the statement that answers it

MOST_ROWS = 60
"""The maximum number of rows in the result of a question."""

_AGGREGATES = {"highest": "max", "lowest": "min", "total": "sum"}


def questions(
    database: Database, rows: dict[str, list[Row]], connection: sqlite3.Connection, draw: Draw
) -> Iterator[SqlQuestion]:
    """Yield an endless sequence of different questions.

    Args:
        database: The database that the questions are about.
        rows: The rows of its tables.
        connection: The same database, to check that the statements have results.
        draw: The source of random draws.
    """
    author = _Author(database, rows, draw)
    used: set[str] = set()
    while True:
        drawn = author.question()
        if drawn is None:
            continue
        question, sql = drawn
        if question in used or sql in used or not _has_a_result(connection, sql):
            continue
        used |= {question, sql}
        yield question, sql


def _has_a_result(connection: sqlite3.Connection, sql: str) -> bool:
    """Return whether a result is one that a statement without any table could not return by chance."""
    rows = connection.execute(sql).fetchmany(MOST_ROWS + 1)
    if not 1 <= len(rows) <= MOST_ROWS:
        return False
    return not all(value in {None, 0, 1, 100} for row in rows for value in row)


class _Author:
    """Draws questions; some of them have no result."""

    def __init__(self, database: Database, rows: dict[str, list[Row]], draw: Draw) -> None:
        self._draw = draw
        self._select = Selector(rows, draw)
        self._tables = database.tables
        self._named = [table for table in database.tables if table.label]
        self._linked = [table for table in database.tables if table.links]
        self._chosen = [table for table in database.tables if table.picks]
        self._crossing = [table for table in self._linked if len(table.links) > 1 and _named_links(table)]
        self._kinds: tuple[Callable[[], SqlQuestion | None], ...] = (
            self._count,
            self._names,
            self._names,
            self._average,
            self._extreme_value,
            self._extreme_rows,
            self._different,
            self._by_kind,
            self._common_kinds,
            self._with_many,
            self._without,
            self._crossed,
            self._above_average,
            self._share,
            self._by_parent,
        )

    def question(self) -> SqlQuestion | None:
        """Return a question; None if the draw gives none."""
        return self._draw.one(self._kinds)()

    def _number(self, table: TableSchema) -> NumberColumn:
        return self._draw.one(table.numbers)

    def _count(self) -> SqlQuestion:
        some = self._select.selection(self._draw.one(self._tables))
        return f"Count the {some.phrase}.", some.sql("count(*)")

    def _names(self) -> SqlQuestion | None:
        some = self._select.selection(self._draw.one(self._named))
        label = _label(some.table)
        if self._draw.chance(0.5):
            return f"Give the {words(label)}s of the {some.phrase}.", some.sql(f"T1.{label}")
        free = [column for column in some.table.value_columns if column not in some.used_columns]
        if not free:
            return None
        other = self._draw.one(free)
        question = f"Give the {words(label)} and the {other.words} of each of the {some.phrase}."
        return question, some.sql(f"T1.{label}, T1.{other.name}")

    def _average(self) -> SqlQuestion:
        some = self._select.selection(self._draw.one(self._tables))
        number = self._number(some.table)
        question = f"What is the average {number.words}, rounded to two decimals, of the {some.phrase}?"
        return question, some.sql(f"round(avg(T1.{number.name}), 2)")

    def _extreme_value(self) -> SqlQuestion | None:
        some = self._select.selection(self._draw.one(self._tables))
        number, which = self._number(some.table), self._draw.one(list(_AGGREGATES))
        if which == "total" and not number.adds_up:
            return None
        question = f"What is the {which} {number.words} of the {some.phrase}?"
        return question, some.sql(f"{_AGGREGATES[which]}(T1.{number.name})")

    def _extreme_rows(self) -> SqlQuestion:
        some = self._select.selection(self._draw.one(self._named))
        label, number = _label(some.table), self._number(some.table)
        which = self._draw.one(["highest", "lowest"])
        best = some.sql(f"{_AGGREGATES[which]}(T1.{number.name})")
        question = (
            f"Of the {some.phrase}: which have the {which} {number.words}? Give the {words(label)} of each."
        )
        return question, some.sql(f"T1.{label}", f" AND T1.{number.name} = ({best})")

    def _different(self) -> SqlQuestion | None:
        some, pick = self._kind()
        if pick is None:
            return None
        question = f"Which different values does the {pick.words} have among the {some.phrase}?"
        return question, some.sql(f"DISTINCT T1.{pick.name}")

    def _by_kind(self) -> SqlQuestion | None:
        some, pick = self._kind()
        if pick is None:
            return None
        question = f"For each {pick.words}, count the {some.phrase}. Give the {pick.words} and the number."
        return question, some.sql(f"T1.{pick.name}, count(*)", f" GROUP BY T1.{pick.name}")

    def _common_kinds(self) -> SqlQuestion | None:
        some, pick = self._kind()
        if pick is None:
            return None
        least = self._draw.between(2, 6)
        question = f"Which values does the {pick.words} have for at least {least} of the {some.phrase}?"
        return question, some.sql(f"T1.{pick.name}", f" GROUP BY T1.{pick.name} HAVING count(*) >= {least}")

    def _with_many(self) -> SqlQuestion | None:
        child, link = self._child()
        label = link.table.label
        if label is None:
            return None
        phrase, where, _ = self._select.condition(child, "T2", most=1)
        least = self._draw.between(2, 5)
        question = (
            f"Which {link.table.many} have at least {least} {child.many} {phrase}? "
            f"Give the {words(label.name)} of each."
        )
        return question, (
            f"SELECT T1.{label.name} FROM {link.table.name} AS T1 JOIN {child.name} AS T2 "  # noqa: S608
            f"ON T1.{link.name} = T2.{link.name} WHERE {where} "
            f"GROUP BY T1.{link.name} HAVING count(*) >= {least}"
        )

    def _without(self) -> SqlQuestion | None:
        child, link = self._child()
        label = link.table.label
        if label is None:
            return None
        phrase, where, _ = self._select.condition(child, "T2")
        about, which, _ = self._select.condition(link.table, "T1", most=1)
        question = (
            f"Of the {link.table.many} {about}: which have no {child.many} {phrase}? "
            f"Give the {words(label.name)} of each."
        )
        return question, (
            f"SELECT T1.{label.name} FROM {link.table.name} AS T1 WHERE {which} AND NOT EXISTS "  # noqa: S608
            f"(SELECT 1 FROM {child.name} AS T2 WHERE T2.{link.name} = T1.{link.name} AND {where})"
        )

    def _crossed(self) -> SqlQuestion:
        table = self._draw.one(self._crossing)
        one = self._draw.one(_named_links(table))
        other = self._draw.one([link for link in table.links if link is not one])
        label = _label(one.table)
        phrase, where, _ = self._select.condition(other.table, "T3")
        question = (
            f"Which {one.table.many} have {table.many} of {other.table.many} {phrase}? "
            f"Give the {words(label)} of each."
        )
        return question, (
            f"SELECT DISTINCT T1.{label} FROM {one.table.name} AS T1 "  # noqa: S608
            f"JOIN {table.name} AS T2 ON T1.{one.name} = T2.{one.name} "
            f"JOIN {other.table.name} AS T3 ON T2.{other.name} = T3.{other.name} WHERE {where}"
        )

    def _above_average(self) -> SqlQuestion:
        some = self._select.selection(self._draw.one(self._named))
        table, label = some.table, _label(some.table)
        number = self._number(table)
        question = (
            f"Of the {some.phrase}: for which is the {number.words} above the average {number.words} of all "
            f"{table.many}? Give the {words(label)} of each."
        )
        mean = f"SELECT avg({number.name}) FROM {table.name}"  # noqa: S608
        return question, some.sql(f"T1.{label}", f" AND T1.{number.name} > ({mean})")

    def _share(self) -> SqlQuestion | None:
        some = self._select.selection(self._draw.one(self._tables))
        phrase, sql, used = self._select.condition(some.table, "T1", most=1)
        if set(used) & set(some.used_columns):
            return None
        question = f"Of the {some.phrase}: what percentage, rounded to two decimals, are ones {phrase}?"
        return question, some.sql(f"round(100.0 * sum({sql}) / count(*), 2)")

    def _by_parent(self) -> SqlQuestion | None:
        child, link = self._child()
        label, number = link.table.label, self._number(child)
        if label is None or not number.adds_up:
            return None
        phrase, where, _ = self._select.condition(link.table, "T1", most=1)
        question = (
            f"For each of the {link.table.many} {phrase} that have {child.many}, give the "
            f"{words(label.name)} and the total {number.words} of its {child.many}."
        )
        return question, (
            f"SELECT T1.{label.name}, sum(T2.{number.name}) FROM {link.table.name} AS T1 "  # noqa: S608
            f"JOIN {child.name} AS T2 ON T1.{link.name} = T2.{link.name} WHERE {where} "
            f"GROUP BY T1.{link.name}"
        )

    def _kind(self) -> tuple[RowSelection, PickColumn | None]:
        """Return a selection, and a text column that its condition does not use."""
        some = self._select.selection(self._draw.one(self._chosen))
        free = [pick for pick in some.table.picks if pick not in some.used_columns]
        return some, self._draw.one(free) if free else None

    def _child(self) -> tuple[TableSchema, LinkColumn]:
        child = self._draw.one(self._linked)
        return child, self._draw.one(child.links)


def _named_links(table: TableSchema) -> list[LinkColumn]:
    return [link for link in table.links if link.table.label]


def _label(table: TableSchema) -> str:
    if table.label is None:
        raise ValueError(f"the rows of {table.name} have no names")
    return table.label.name
