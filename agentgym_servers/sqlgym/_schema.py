"""The schema of a database of the SQLGym server: tables and columns, and their names in questions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

__all__ = ["Column", "Database", "LabelColumn", "LinkColumn", "NumberColumn", "PickColumn", "TableSchema"]


@dataclass(frozen=True)
class LabelColumn:
    """A column with a unique name for each row.

    Attributes:
        name: The column's name.
        kind: The kind of name, as for `agentgym_servers.sqlgym._names.name_of`.
    """

    name: str
    kind: str


@dataclass(frozen=True)
class PickColumn:
    """A column whose value is one of a few texts.

    Attributes:
        name: The column's name.
        values: The texts.
    """

    name: str
    values: tuple[str, ...]

    @property
    def words(self) -> str:
        """The column's name in a question."""
        return self.name.replace("_", " ")


@dataclass(frozen=True)
class NumberColumn:
    """A column with an integer.

    Attributes:
        name: The column's name.
        least: The smallest value.
        most: The largest value.
        step: The values are the smallest one plus multiples of this step.
        counts: Whether the value is a number of the things that the column is named after.
    """

    name: str
    least: int
    most: int
    step: int = 1
    counts: bool = False

    @property
    def words(self) -> str:
        """The column's name in a question."""
        return f"{'number of ' if self.counts else ''}{self.name.replace('_', ' ')}"

    @property
    def adds_up(self) -> bool:
        """Whether a sum of the values is meaningful."""
        return not self.name.endswith("_year") and self.name not in {"age", "rating"}


@dataclass(frozen=True)
class LinkColumn:
    """A foreign key.

    Attributes:
        table: The table that the key refers to.
    """

    table: TableSchema

    @property
    def name(self) -> str:
        """The column's name."""
        return self.table.key


Column: TypeAlias = LabelColumn | PickColumn | NumberColumn | LinkColumn


class TableSchema:
    """A table, whose first column is its primary key.

    Args:
        one: The noun for a row, such as ``student``.
        rows: The number of rows.
        columns: The other columns.
        many: The noun for several rows, which is also the table's name; by default the singular with an s.

    Attributes:
        name: The table's name.
        key: The name of its primary key.
        label: The column with the name of the row, if the table has one.
        picks: The columns with one of a few texts.
        numbers: The columns with numbers.
        value_columns: The columns of both kinds.
        links: The foreign keys.
    """

    def __init__(self, one: str, rows: int, *columns: Column, many: str = "") -> None:
        self.one = one.replace("_", " ")
        self.name = many or f"{one}s"
        self.many = self.name.replace("_", " ")
        self.rows = rows
        self.key = f"{one}_id"
        self.columns = columns
        self.label = next((column for column in columns if isinstance(column, LabelColumn)), None)
        self.picks = [column for column in columns if isinstance(column, PickColumn)]
        self.numbers = [column for column in columns if isinstance(column, NumberColumn)]
        self.value_columns: list[PickColumn | NumberColumn] = [*self.picks, *self.numbers]
        self.links = [column for column in columns if isinstance(column, LinkColumn)]


@dataclass(frozen=True)
class Database:
    """A database.

    Attributes:
        name: Its name.
        tables: Its tables; each follows those that it refers to.
    """

    name: str
    tables: tuple[TableSchema, ...]

    def description(self) -> str:
        """Return the description that the agent reads, in the format of AgentGym's server."""
        sentences = [f"{self.name} contains tables such as {', '.join(table.name for table in self.tables)}."]
        for table in self.tables:
            columns = ", ".join([table.key, *(column.name for column in table.columns)])
            sentences.append(
                f"Table {table.name} has columns such as {columns}. {table.key} is the primary key."
            )
        sentences += [
            f"The {link.name} of {table.name} is the foreign key of {link.table.key} of {link.table.name}."
            for table in self.tables
            for link in table.links
        ]
        return " ".join(sentences)
