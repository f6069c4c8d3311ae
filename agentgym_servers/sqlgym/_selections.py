"""Random selections of rows, in words and in SQL: the subjects of the SQLGym server's questions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from agentgym_servers.sqlgym._schema import PickColumn

if TYPE_CHECKING:
    from agentgym_servers._frame.draw import Draw
    from agentgym_servers.sqlgym._rows import Row
    from agentgym_servers.sqlgym._schema import NumberColumn, TableSchema

__all__ = ["RowSelection", "Selector", "words"]


@dataclass(frozen=True)
class RowSelection:
    """Some rows of a table.

    Attributes:
        table: The table, which is ``T1`` in the SQL.
        phrase: The rows in words, such as ``students whose birth year is above 1999``.
        tables: The text after FROM.
        where: The text after WHERE.
        used_columns: The columns of ``T1`` that the condition uses.
    """

    table: TableSchema
    phrase: str
    tables: str
    where: str
    used_columns: tuple[PickColumn | NumberColumn, ...]

    def sql(self, columns: str, rest: str = "") -> str:
        """Return a statement over the rows.

        Args:
            columns: The text after SELECT.
            rest: The text after the condition.
        """
        return f"SELECT {columns} FROM {self.tables} WHERE {self.where}{rest}"  # noqa: S608 - made here


def words(name: str) -> str:
    """Return the name of a column in words."""
    return name.replace("_", " ")


class Selector:
    """Draws selections from a database.

    Args:
        rows: The rows of all tables, by table name.
        draw: The source of random draws.
    """

    def __init__(self, rows: dict[str, list[Row]], draw: Draw) -> None:
        self._rows = rows
        self._draw = draw

    def condition(
        self, table: TableSchema, alias: str, *, most: int = 2
    ) -> tuple[str, str, tuple[PickColumn | NumberColumn, ...]]:
        """Return a condition on rows of a table: in words that begin with "whose", in SQL, and its columns.

        Args:
            table: The table.
            alias: The table's alias in the SQL.
            most: The maximum number of columns.
        """
        chosen = self._draw.some(
            table.value_columns, self._draw.between(1, min(most, len(table.value_columns)))
        )
        comparisons = [self._comparison(table, alias, column) for column in chosen]
        phrases, conditions = zip(*comparisons, strict=True)
        return " and ".join(phrases), " AND ".join(conditions), tuple(chosen)

    def _comparison(
        self, table: TableSchema, alias: str, column: PickColumn | NumberColumn
    ) -> tuple[str, str]:
        phrase, name = f"whose {column.words} is", f"{alias}.{column.name}"
        if isinstance(column, PickColumn):
            value = self._draw.one(column.values)
            return f"{phrase} '{value}'", f"{name} = '{value}'"
        values = [int(row[column.name]) for row in self._rows[table.name]]
        least, most = sorted((self._draw.one(values), self._draw.one(values)))
        kind = self._draw.below(4)
        if kind == 0 and least < most:
            return f"{phrase} from {least} to {most}", f"{name} BETWEEN {least} AND {most}"
        # A condition must not match every row or no row.
        either = ("above", ">") if least == min(values) or kind == 1 else ("at least", ">=")
        comparison, operator = ("below", "<") if least > min(values) and kind == 2 else either  # noqa: PLR2004
        return f"{phrase} {comparison} {least}", f"{name} {operator} {least}"

    def selection(self, table: TableSchema) -> RowSelection:
        """Select rows of a table by its own columns, by columns of tables it refers to, or by both."""
        draw = self._draw
        links = draw.some(table.links, draw.between(0, min(2, len(table.links))))
        phrase, tables, where, joined = table.many, f"{table.name} AS T1", [], 1
        used: tuple[PickColumn | NumberColumn, ...] = ()
        if not links or draw.chance(0.4):
            condition, sql, used = self.condition(table, "T1")
            phrase += f" {condition}{',' if links else ''}"
            where.append(sql)
        for number, link in enumerate(links):
            parent, alias = link.table, f"T{joined + 1}"
            joined += 1
            tables += f" JOIN {parent.name} AS {alias} ON T1.{link.name} = {alias}.{parent.key}"
            phrase += f"{' and' if number else ''} of {parent.many}"
            if len(links) == 1 and parent.links and draw.chance(0.5):
                grand = draw.one(parent.links).table
                joined += 1
                tables += f" JOIN {grand.name} AS T{joined} ON {alias}.{grand.key} = T{joined}.{grand.key}"
                phrase += f" of {grand.many}"
                parent, alias = grand, f"T{joined}"
            condition, sql, _ = self.condition(parent, alias, most=1)
            phrase += f" {condition}"
            where.append(sql)
        return RowSelection(table, phrase, tables, " AND ".join(where), used)
