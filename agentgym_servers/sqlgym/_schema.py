"""What a database of the local SQLGym server is made of: its tables and columns, and how they are called."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

__all__ = ["Column", "Database", "LabelColumn", "LinkColumn", "NumberColumn", "PickColumn", "TableSchema"]


@dataclass(frozen=True)
class LabelColumn:
    """A column with a name that no other row of the table has.

    Attributes:
        name: The column's name.
        kind: What `names.name_of` makes of it.
    """

    name: str
    kind: str


@dataclass(frozen=True)
class PickColumn:
    """A column with one of a few texts.

    Attributes:
        name: The column's name.
        values: The texts.
    """

    name: str
    values: tuple[str, ...]

    @property
    def said(self) -> str:
        """What it is called in a question."""
        return self.name.replace("_", " ")


@dataclass(frozen=True)
class NumberColumn:
    """A column with a whole number.

    Attributes:
        name: The column's name.
        least: The least there is.
        most: The most there is.
        step: The numbers are the least and whole steps above it.
        counts: Whether it counts what its name says.
    """

    name: str
    least: int
    most: int
    step: int = 1
    counts: bool = False

    @property
    def said(self) -> str:
        """What it is called in a question."""
        return f"{'number of ' if self.counts else ''}{self.name.replace('_', ' ')}"

    @property
    def adds_up(self) -> bool:
        """Whether a sum of it means something."""
        return not self.name.endswith("_year") and self.name not in {"age", "rating"}


@dataclass(frozen=True)
class LinkColumn:
    """A foreign key.

    Attributes:
        table: The table that it leads to, by its place among the tables before.
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
        one: What a row is called, such as ``student``.
        rows: How many rows there are.
        columns: The other columns.
        many: What several rows are called, and the table; by default the same with an s.

    Attributes:
        name: The table's name.
        key: The name of its primary key.
        label: The column with its name, if it has one.
        picks: The columns with one of a few texts.
        numbers: The columns with numbers.
        told: Both of these.
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
        self.told: list[PickColumn | NumberColumn] = [*self.picks, *self.numbers]
        self.links = [column for column in columns if isinstance(column, LinkColumn)]


@dataclass(frozen=True)
class Database:
    """A database.

    Attributes:
        name: Its name.
        tables: Its tables; a table comes behind those that it refers to.
    """

    name: str
    tables: tuple[TableSchema, ...]

    def description(self) -> str:
        """Return what an agent is told of it, in the form of AgentGym's server."""
        said = [f"{self.name} contains tables such as {', '.join(table.name for table in self.tables)}."]
        for table in self.tables:
            columns = ", ".join([table.key, *(column.name for column in table.columns)])
            said.append(f"Table {table.name} has columns such as {columns}. {table.key} is the primary key.")
        said += [
            f"The {link.name} of {table.name} is the foreign key of {link.table.key} of {link.table.name}."
            for table in self.tables
            for link in table.links
        ]
        return " ".join(said)
